"""VirtualBox through its command line: one `VirtualBoxHypervisor` per OS user on a host.

`parse` reads what VBoxManage prints, `errors` tells its failures apart, `chronicle` remembers what one
reading alone does not tell, `run` starts and ends processes, `tool` asks VBoxManage, `client` is the port.
"""

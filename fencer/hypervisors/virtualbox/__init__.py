"""VirtualBox through its command line: one `VirtualBoxHypervisor` per OS user on a host.

`parse` reads VBoxManage's output, `errors` sorts its failures, `chronicle` remembers what one reading alone
does not show, `run` starts and ends processes, `tool` asks VBoxManage, `client` is the port.
"""

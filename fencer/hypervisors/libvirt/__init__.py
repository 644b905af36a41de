"""KVM and everything else that libvirt drives: one `LibvirtHypervisor` per URI.

`parse` holds the table from libvirt's numbers to power states, `events` remembers what one unbroken
subscription has shown, `errors` translates, `connection` opens and closes, `client` is the port.
"""

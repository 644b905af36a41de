#!/bin/busybox sh
# The initrd's init: find the disk, unpack what the test brings (a tar on a second disk), become systemd.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod "/modules/$module"; done
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
mount -t ext4 -o rw /dev/vda /mnt || exec sh
if [ -b /dev/vdb ]; then tar -x -f /dev/vdb -C /mnt; fi
umount /sys /proc
mount --move /dev /mnt/dev
exec switch_root /mnt /sbin/init

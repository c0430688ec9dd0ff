//! Commands that change the machine: accounts, disks, modules, power.

use super::{options::written, spec::KnownCommand};
use crate::{
    arg::Arg,
    effect::{CommandFinding, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("reboot shutdown halt poweroff init telinit", |_| {
        CommandFinding::mutating("it stops the machine or changes what runs on it")
    }),
    KnownCommand::Own(
        "useradd usermod userdel adduser deluser groupadd groupmod groupdel addgroup delgroup \
         gpasswd passwd chpasswd newusers chsh chfn chage vipw vigr visudo newgrp pwconv pwunconv",
        |_| CommandFinding::mutating("it changes accounts"),
    ),
    KnownCommand::Own("umount swapoff fusermount fusermount3", |_| {
        CommandFinding::mutating("it unmounts a file system")
    }),
    KnownCommand::Own(
        "mkfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mke2fs mkswap \
         wipefs parted gdisk cfdisk sgdisk fsck fsck.ext4 e2fsck tune2fs resize2fs blkdiscard \
         hdparm dmsetup cryptsetup mdadm lvcreate lvremove lvextend pvcreate vgcreate",
        devices,
    ),
    KnownCommand::Own("insmod rmmod modprobe depmod kexec", |_| {
        CommandFinding::mutating("it changes the kernel's modules")
    }),
    KnownCommand::Own("hwclock ntpdate adjtimex", |_| {
        CommandFinding::mutating("it sets a clock")
    }),
    KnownCommand::Own(
        "update-alternatives update-grub update-initramfs locale-gen localedef dpkg-reconfigure",
        |_| CommandFinding::mutating("it changes the system's settings"),
    ),
    KnownCommand::Own(
        "iptables ip6tables iptables-restore nft ufw firewall-cmd tc brctl ethtool iw iwconfig \
         dhclient nmcli",
        |_| CommandFinding::unknown("it may change the network"),
    ),
    KnownCommand::Own("logger wall write mesg", |_| {
        CommandFinding::mutating("it sends a message to others")
    }),
    KnownCommand::Own("ldd", |argv| {
        let finding = CommandFinding::unknown("it may run the program it inspects");
        let files = argv.iter().skip(1).map(super::options::content);
        files.fold(finding, CommandFinding::with)
    }),
];

/// Reports every operand as a device or file that is overwritten.
fn devices(argv: &[Arg]) -> CommandFinding {
    let targets = argv
        .iter()
        .skip(1)
        .filter(|word| word.text().is_none_or(|text| !text.starts_with('-')));
    targets.fold(
        CommandFinding::mutating("it changes a disk"),
        |finding, target| finding.with(written(target, WriteKind::OperandWrite)),
    )
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, each, effects, verdict};

    #[test]
    fn changing_the_machine_is_not_harmless() {
        assert_not_read_only(&each(
            "reboot; shutdown -h now; useradd x; passwd; umount /mnt; mkfs.ext4 /dev/sda1; \
             modprobe x; hwclock -w; ldd /bin/ls; iptables -F; logger x; wall x; locale-gen",
        ));
        assert_eq!(
            effects("mkfs -t ext4 /dev/sda1"),
            ["OperandWrite ext4", "OperandWrite /dev/sda1"]
        );
        assert_eq!(
            verdict("reboot"),
            "mutating: it stops the machine or changes what runs on it"
        );
    }
}

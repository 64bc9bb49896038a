package guard

import "strings"

// denylist names commands that nothing an agent is asked for needs, and that
// reach past a workspace by their nature. It is looked up by the base name, in
// lower case, wherever the program lies and behind whatever wrapper. Under a
// kernel provider a hit is a note.
func denylist(name string) string {
	switch name {
	case "sudo", "su", "doas", "pkexec", "runuser", "sudoedit", "gosu", "su-exec", "setpriv", "newgrp", "sg", "run0":
		return "it becomes another user"
	case "shutdown", "reboot", "halt", "poweroff", "init", "telinit", "kexec":
		return "it stops the machine"
	case "mkfs", "mke2fs", "mkswap", "fdisk", "sfdisk", "cfdisk", "parted", "sgdisk", "gdisk", "wipefs", "blkdiscard",
		"mdadm", "cryptsetup", "lvremove", "vgremove", "pvremove", "shred", "hdparm", "badblocks", "fsck", "tune2fs",
		"resize2fs", "debugfs", "diskutil":
		return "it works on disks, not on files"
	case "mount", "umount", "losetup", "swapon", "swapoff", "fusermount", "fusermount3", "pivot_root":
		return "it changes what is mounted"
	case "chroot", "nsenter", "unshare", "bwrap", "firejail", "proot", "systemd-nspawn", "capsh", "ip-netns":
		return "it makes another world, in which paths mean something else"
	case "docker", "podman", "nerdctl", "buildah", "lxc", "lxc-start", "lxd", "incus", "kubectl", "ctr", "crictl",
		"runc", "crun", "virsh", "machinectl", "vagrant", "multipass", "docker-compose":
		return "it has another process act outside"
	case "insmod", "rmmod", "modprobe", "depmod", "sysctl", "dmesg", "bpftool", "bpftrace", "setenforce",
		"apparmor_parser", "auditctl":
		return "it changes the kernel"
	case "iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "ebtables", "tc", "ifconfig", "route", "tcpdump", "pfctl":
		return "it changes or taps the network"
	case "crontab", "at", "atd", "batch", "systemctl", "systemd-run", "service", "loginctl", "launchctl", "initctl",
		"rc-service", "update-rc.d", "chkconfig", "dbus-send", "busctl", "gdbus":
		return "it has something run later or elsewhere"
	case "useradd", "userdel", "usermod", "groupadd", "groupdel", "passwd", "chpasswd", "chsh", "chfn", "visudo",
		"vipw", "adduser", "deluser":
		return "it changes accounts"
	case "chown", "chgrp", "setfacl", "chattr", "setcap", "mknod":
		return "it changes who owns or may use files"
	case "killall", "pkill", "skill", "xkill":
		return "it ends processes by name, whoever started them"
	}
	if strings.HasPrefix(name, "mkfs.") || strings.HasPrefix(name, "iptables-") || strings.HasPrefix(name, "fsck.") {
		return "it works on disks or the network, not on files"
	}
	return ""
}

// denied says why a command is on the denylist, by its name or its arguments.
func denied(name string, args []token) string {
	name = strings.ToLower(name)
	if why := denylist(name); why != "" {
		return why
	}
	switch name {
	case "rm":
		return deniedRemove(args)
	case "chmod":
		if hasFlag(args, "-R", "--recursive") {
			for _, t := range args {
				if p := strings.TrimRight(t.text, "/*."); t.text != "" && p == "" || p == "~" {
					return "it changes the mode of everything"
				}
			}
		}
	case "dd":
		for _, t := range args {
			if to, ok := strings.CutPrefix(t.text, "of="); ok && strings.HasPrefix(to, "/dev/") && !harmless(to) {
				return "it writes to a device"
			}
		}
	case "kill":
		for i, t := range args {
			// The first word with a dash may be a signal: kill -9 12.
			if t.text == "-1" && (i > 0 || len(args) == 1) || t.text == "1" || t.text == "0" && i == len(args)-1 && i > 0 && args[i-1].text != "-s" {
				return "it ends processes that are not its own"
			}
			if t.text == "-1" && i == 0 && len(args) == 2 && strings.HasPrefix(args[1].text, "-") {
				return "it ends processes that are not its own"
			}
		}
	case "git":
		return ""
	}
	return ""
}

// deniedRemove refuses to remove everything. An rm without a file in sight
// takes its files from where the guard does not see them.
func deniedRemove(args []token) string {
	recursive := hasFlag(args, "-r", "-R", "--recursive")
	operands := 0
	for i, t := range args {
		if strings.HasPrefix(t.text, "-") && t.text != "-" && !ended(args[:i]) {
			if strings.HasPrefix(t.text, "--no-p") {
				return "it gives up the protection of /"
			}
			continue
		}
		operands++
		p := strings.TrimRight(t.text, "/")
		switch {
		case t.text == "":
		case p == "", p == "/*", p == "~", p == "~/*", p == ".", p == "..", strings.HasSuffix(p, "/.."), p == "./.":
			if recursive || p == "/*" || p == "~/*" {
				return "it removes everything"
			}
		}
	}
	if operands == 0 && !hasFlag(args, "--help", "--version") {
		return "it removes files that are not in the text"
	}
	return ""
}

func ended(args []token) bool {
	for _, t := range args {
		if t.text == "--" {
			return true
		}
	}
	return false
}

// hasFlag says that an option is given, alone, in a cluster of short ones,
// with a value glued to it, or abbreviated.
func hasFlag(args []token, flags ...string) bool {
	for _, t := range args {
		if t.text == "--" {
			return false
		}
		for _, f := range flags {
			if flagHit(t.text, f) {
				return true
			}
		}
	}
	return false
}

// flagHit says that text gives the option flag: "-o" is looked for in every
// cluster, "--output" also abbreviated, "-exec" as it is.
func flagHit(text, flag string) bool {
	if len(text) < 2 || text[0] != '-' {
		return false
	}
	if strings.HasPrefix(flag, "--") {
		name, _, _ := strings.Cut(text, "=")
		return len(name) > 2 && strings.HasPrefix(flag, name) && text[1] == '-'
	}
	if len(flag) > 2 {
		name, _, _ := strings.Cut(text, "=")
		return name == flag
	}
	return text[1] != '-' && strings.IndexByte(text, flag[1]) > 0
}

// Prints everything that a process inherits, one "key value" a line. It opens
// nothing before it has looked at its descriptors.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static void file(const char *key, const char *path) {
	char line[1 << 16];
	FILE *f = fopen(path, "r");
	if (!f) {
		printf("%s error %s\n", key, strerror(errno));
		return;
	}
	while (fgets(line, sizeof line, f))
		printf("%s %s", key, line);
	fclose(f);
}

int main(void) {
	char b[4096];
	printf("fds");
	for (int fd = 0; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			printf(" %d", fd);
	printf("\n");
	uid_t u[3];
	gid_t g[3];
	getresuid(&u[0], &u[1], &u[2]);
	getresgid(&g[0], &g[1], &g[2]);
	printf("uid %d %d %d\ngid %d %d %d\n", u[0], u[1], u[2], g[0], g[1], g[2]);
	printf("securebits %#x\n", prctl(PR_GET_SECUREBITS));
	printf("keepcaps %d\n", prctl(PR_GET_KEEPCAPS));
	printf("nonewprivs %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	int v = -1;
	prctl(PR_GET_PDEATHSIG, &v);
	printf("pdeathsig %d\n", v);
	v = -1;
	prctl(PR_GET_CHILD_SUBREAPER, &v);
	printf("subreaper %d\n", v);
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
	printf("personality %#x\n", personality(0xffffffff));
	for (int r = 0; r < 16; r++) {
		struct rlimit l;
		if (getrlimit(r, &l) == 0)
			printf("rlimit %d %lld %lld\n", r, (long long)l.rlim_cur, (long long)l.rlim_max);
	}
	printf("leader %d\n", getsid(0) == getpid() && getpgrp() == getpid());
	printf("parent %d\n", getppid());
	printf("terminal %d\n", open("/dev/tty", O_RDWR));
	printf("priority %d\n", getpriority(PRIO_PROCESS, 0));
	gethostname(b, sizeof b);
	printf("hostname %s\n", b);
	mode_t m = umask(0);
	printf("umask %04o\n", m);
	umask(m);
	printf("cwd %s\n", getcwd(b, sizeof b));
	printf("ignored");
	for (int s = 1; s < 65; s++) {
		struct sigaction a;
		if (sigaction(s, NULL, &a) == 0 && a.sa_handler == SIG_IGN)
			printf(" %d", s);
	}
	sigset_t set;
	sigprocmask(SIG_BLOCK, NULL, &set);
	printf("\nblocked");
	for (int s = 1; s < 65; s++)
		if (sigismember(&set, s) == 1)
			printf(" %d", s);
	printf("\n");
	const char *ns[] = {"user", "mnt", "pid", "ipc", "uts", "net", "cgroup"};
	for (int i = 0; i < 7; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/self/ns/%s", ns[i]);
		ssize_t n = readlink(path, b, sizeof b - 1);
		b[n < 0 ? 0 : n] = 0;
		printf("ns %s %s\n", ns[i], b);
	}
	const char *first[] = {"environ", "maps", "mem", "auxv", "stack", "syscall", "io", "fd/0", "cwd", "root", "exe", "ns/mnt", "mountinfo"};
	for (int i = 0; i < 13; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/1/%s", first[i]);
		int fd = open(path, O_RDONLY | O_NONBLOCK);
		int n = fd < 0 ? -1 : (int)read(fd, b, 1);
		printf("first %s %s\n", first[i], n < 0 ? strerror(errno) : "readable");
		if (fd >= 0)
			close(fd);
	}
	for (char **e = environ; *e; e++)
		printf("env %s\n", *e);
	file("status", "/proc/self/status");
	file("oom", "/proc/self/oom_score_adj");
	file("mount", "/proc/self/mountinfo");
	return 0;
}

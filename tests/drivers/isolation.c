/* isolation: what is tried from inside a box must not work. */
#include "tests/drivers/conformance.h"
#include "tests/drivers/fixture.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* perl is essential on Debian, and can make any system call. Prints the name of the error. */
#define PERL_ERRNO                                                                                 \
	"perl -MErrno -e '$! = 0; %s; print $!{EPERM} ? \"EPERM\" : $!{ENOSYS} ? \"ENOSYS\" : $! " \
	"? \"$!\" : \"ok\"'"

static const char *perl_errno(struct fixture_box *b, const char *expression)
{
	char line[1024];

	(void)snprintf(line, sizeof(line), PERL_ERRNO, expression);
	return fixture_shell(b, "", line, 0);
}

/* A kernel of its own may be used as its root likes: what is tried is no danger to the host. */
static bool has_own_kernel(void)
{
	return !strncmp(fixture_current()->facts.isolation, "microvm", strlen("microvm"));
}

static void test_no_host_file_outside_the_image(void **state)
{
	struct fixture_box *b = *state;
	char path[] = "/tmp/sbxd-secret-XXXXXX";
	char line[128];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	(void)snprintf(line, sizeof(line), "test -e %s", path);
	(void)fixture_shell(b, "", line, 1);
	(void)close(fd);
	(void)unlink(path);
	assert_string_equal(
	    fixture_shell(b, "", "find /tmp /var/tmp /root /run /srv -mindepth 1", 0), "");
	assert_string_equal(
	    fixture_shell(b, "", "cat /etc/shadow 2>/dev/null | grep -v :[*!]:", 1), "");
	(void)fixture_shell(b, "", "test -e /.dockerenv || test -e /boot/ || test -e /work", 1);
}

static void test_no_host_path_in_mountinfo(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;

	(void)fixture_shell(b, "", "cat /proc/self/mountinfo /proc/1/mountinfo", 0);
	assert_null(strstr(b->result.out, f->dir));
	assert_null(strstr(b->result.out, "/usr/"));
	assert_null(strstr(b->result.out, "oldroot"));
}

static void test_standard_directories_are_there(void **state)
{
	struct fixture_box *b = *state;

	(void)fixture_shell(b, "",
	    "for d in workspace uploads outputs; do echo x > /mnt/user-data/$d/f || exit 9; done;"
	    "echo x > /mnt/skills/f && echo x > /tmp/f && echo x > /root/f && echo x > /run/f &&"
	    "echo x > /home/f && echo x > /var/tmp/f && echo x > /etc/f && echo x > /dev/shm/f",
	    0);
	assert_string_equal(
	    fixture_shell(b, "", "stat -c %a /tmp /var/tmp /dev/shm", 0), "1777\n1777\n1777\n");
	if (!fixture_current()->site.uid_base)
		return; /* with one uid there is nobody else to be */
	/* Another user of the box may write there, and root may write his files. */
	(void)fixture_shell(b, "nobody", "echo y > /mnt/user-data/workspace/n", 0);
	(void)fixture_shell(b, "", "echo z > /mnt/user-data/workspace/n", 0);
}

static void test_root_can_change_the_image_for_itself(void **state)
{
	struct fixture_box *b = *state;

	if (!fixture_current()->site.uid_base)
		skip(); /* an ordinary user's box does not own /usr */
	(void)fixture_shell(b, "",
	    "echo hi > /usr/local/bin/sbxd-conformance && rm /usr/bin/yes && touch /usr/bin/env &&"
	    "mkdir -p /usr/lib/sbxd-conformance/a && rm -r /usr/lib/sbxd-conformance",
	    0);
	assert_int_equal(access("/usr/local/bin/sbxd-conformance", F_OK), -1);
	assert_int_equal(access("/usr/bin/yes", X_OK), 0);
}

static void test_no_host_process(void **state)
{
	struct fixture_box *b = *state;
	int pids;

	/* The shell, its children, and sbx-guest with what helpers it may have; threads of the
	 * kernel have no arguments. */
	pids = atoi(fixture_shell(b, "",
	    "perl -e 'print scalar grep { open(F, $_) && length(<F> // \"\") } "
	    "glob \"/proc/[0-9]*/cmdline\"'",
	    0));
	assert_in_range(pids, 2, 8);
	assert_string_equal(
	    perl_errno(b, "kill(9, 1)"), "ok"); /* a pid namespace's init is immune */
	assert_int_equal(agent_client_ping(&b->client, patience_ms()), 0);
}

static void test_no_network_but_loopback(void **state)
{
	struct fixture_box *b = *state;

	assert_string_equal(
	    fixture_shell(b, "", "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", 0), "lo\n");
	assert_string_equal(
	    fixture_shell(b, "",
		"perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0);"
		"bind(S,sockaddr_in(80,INADDR_LOOPBACK)) or die $!; listen(S,1);"
		"socket(C,PF_INET,SOCK_STREAM,0);"
		"connect(C,sockaddr_in(80,INADDR_LOOPBACK)) or die $!; print \"up\"'",
		0),
	    "up");
	assert_string_equal(
	    fixture_shell(b, "",
		"perl -MSocket -e 'socket(C,PF_INET,SOCK_STREAM,0);"
		"print connect(C,sockaddr_in(80,inet_aton(\"192.0.2.1\"))) ? 1 : 0'",
		0),
	    "0");
	if (!has_own_kernel())
		assert_string_equal(
		    perl_errno(b, "use Socket; socket(S, PF_INET, SOCK_RAW, 1)"), "EPERM");
}

static int bind_abstract(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(sock >= 0);
	(void)snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", name);
	assert_int_equal(bind(sock, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(sock, 1), 0);
	return sock;
}

#define PERL_CONNECT                                         \
	"perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0);" \
	"print connect(S,pack(\"S a108\",1,\"\\0%s\")) ? 1 : 0'"
#define PERL_LISTEN                                                                           \
	"perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0);"                                  \
	"bind(S,pack(\"S a108\",1,\"\\0%s\")) or die $!; listen(S,1); open(F,\">/tmp/up\"); " \
	"close F; sleep 1000'"                                                                \
	" >/dev/null 2>&1 &"

static void test_no_abstract_sockets_of_others(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;
	struct fixture_box *other = fixture_box_new(f, 2);
	char line[512];
	int sock = bind_abstract(f->instance);

	fixture_box_start(f, other);
	(void)snprintf(line, sizeof(line), PERL_CONNECT, f->instance);
	assert_string_equal(fixture_shell(b, "", line, 0), "0");
	(void)snprintf(line, sizeof(line), PERL_LISTEN, f->instance);
	(void)fixture_shell(other, "", line, 0);
	(void)fixture_shell(other, "", "until test -e /tmp/up; do sleep 0.01; done", 0);
	(void)snprintf(line, sizeof(line), PERL_CONNECT, f->instance);
	assert_string_equal(fixture_shell(other, "", line, 0), "1");
	assert_string_equal(fixture_shell(b, "", line, 0), "0");
	fixture_box_end(f, other);
	(void)close(sock);
}

static void test_set_uid_gains_nothing(void **state)
{
	struct fixture_box *b = *state;

	assert_string_equal(
	    fixture_shell(b, "", "grep -E '^NoNewPrivs' /proc/self/status | tr -d '\\t'", 0),
	    "NoNewPrivs:1\n");
	if (!fixture_current()->site.uid_base)
		return; /* with one uid there is nobody else to be */
	(void)fixture_shell(b, "", "cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id", 0);
	assert_string_equal(fixture_shell(b, "nobody", "/tmp/id -u", 0), "65534\n");
	(void)fixture_shell(b, "",
	    "echo secret > /root/s && cp /usr/bin/cat /usr/local/bin/c &&"
	    "chmod 4755 /usr/local/bin/c",
	    0);
	(void)fixture_shell(b, "nobody", "/usr/local/bin/c /root/s", 1);
}

static void test_capabilities_are_few(void **state)
{
	struct fixture_box *b = *state;
	static const unsigned int never[] = {1 << 12 /* NET_ADMIN */, 1 << 13 /* NET_RAW */,
	    1 << 16 /* SYS_MODULE */, 1 << 17 /* SYS_RAWIO */, 1 << 19 /* SYS_PTRACE */,
	    1 << 21 /* SYS_ADMIN */, 1 << 22 /* SYS_BOOT */, 1 << 25 /* SYS_TIME */,
	    1 << 27 /* MKNOD */};
	const char *out = fixture_shell(b, "", "grep -E '^Cap(Prm|Eff|Bnd)' /proc/self/status", 0);
	const char *p = out;
	unsigned long long caps;

	if (has_own_kernel())
		skip();
	for (int lines = 0; lines < 3; lines++) {
		p = strchr(p, '\t');
		assert_non_null(p);
		caps = strtoull(++p, NULL, 16);
		for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
			assert_false(caps & never[i]);
		assert_int_equal(caps >> 32, 0);
	}
	assert_string_equal(
	    fixture_shell(b, "", "grep -c '^CapAmb:.0000000000000000' /proc/self/status", 0),
	    "1\n");
}

static void test_forbidden_system_calls(void **state)
{
	static const struct {
		int number;
		const char *arguments;
		const char *answer;
	} calls[] = {
	    {SYS_mount, "0,0,0,0,0", "EPERM"},
	    {SYS_umount2, "0,2", "EPERM"},
	    {SYS_pivot_root, "0,0", "EPERM"},
	    {SYS_unshare, "0x10000000", "EPERM"},
	    {SYS_unshare, "0x00020000", "EPERM"},
	    {SYS_setns, "0,0", "EPERM"},
	    {SYS_clone, "0x10000011,0,0,0,0", "EPERM"},
	    {SYS_clone, "0x40000011,0,0,0,0", "EPERM"},
	    {SYS_clone3, "0,0", "ENOSYS"},
	    {SYS_keyctl, "0,-3,0", "EPERM"},
	    {SYS_add_key, "0,0,0,0,0", "EPERM"},
	    {SYS_bpf, "0,0,0", "EPERM"},
	    {SYS_perf_event_open, "0,0,-1,-1,0", "EPERM"},
	    {SYS_userfaultfd, "1", "EPERM"},
	    {SYS_io_uring_setup, "1,0", "EPERM"},
	    {SYS_open_by_handle_at, "0,0,0", "EPERM"},
	    {SYS_init_module, "0,0,0", "EPERM"},
	    {SYS_kexec_load, "0,0,0,0", "EPERM"},
	    {SYS_reboot, "0,0,0,0", "EPERM"},
	    {SYS_swapon, "0,0", "EPERM"},
	    {SYS_settimeofday, "0,0", "EPERM"},
	    {SYS_syslog, "0,0,0", "EPERM"},
	    {SYS_ioctl, "0,0x5412,0", "EPERM"},
	    {SYS_ioctl, "0,0x100005412,0", "EPERM"},
	    {SYS_process_vm_readv, "1,0,0,0,0,0", "EPERM"},
	    {SYS_ptrace, "16,1,0,0", "EPERM"}, /* sbx-guest itself */
	    {SYS_fsopen, "0,0", "EPERM"},
	    {SYS_personality, "0x0400000", "EPERM"},
	    {SYS_personality, "0xffffffff", "ok"},
	};
	struct fixture_box *b = *state;
	char call[256];

	if (has_own_kernel())
		skip();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		(void)snprintf(
		    call, sizeof(call), "syscall(%d,%s)", calls[i].number, calls[i].arguments);
		if (strcmp(perl_errno(b, call), calls[i].answer) != 0)
			fail_msg("%s: %s", call, b->result.out);
	}
}

static void test_kernel_settings_are_not_writable(void **state)
{
	struct fixture_box *b = *state;

	if (has_own_kernel())
		skip();
	(void)fixture_shell(b, "", "echo x > /proc/sys/kernel/hostname", 2);
	(void)fixture_shell(b, "", "echo 1 > /proc/sys/net/ipv4/ip_forward", 2);
	(void)fixture_shell(b, "", "echo b > /proc/sysrq-trigger", 2);
	(void)fixture_shell(b, "", "find /proc/sys -type f -writable 2>/dev/null | grep .", 1);
	assert_string_equal(
	    fixture_shell(b, "", "cat /proc/keys /proc/timer_list 2>/dev/null", 0), "");
	(void)fixture_shell(b, "", "test -e /sys/kernel", 1);
	/* What belongs to a process stays its own. */
	(void)fixture_shell(b, "", "echo 600 > /proc/self/oom_score_adj", 0);
}

static void test_devices_are_few_and_fixed(void **state)
{
	struct fixture_box *b = *state;

	if (has_own_kernel())
		skip();
	assert_string_equal(fixture_shell(b, "",
				"for f in $(find /dev -not -name [0-9]); do test -h $f || ! test "
				"-c $f || echo $f; done | sort",
				0),
	    "/dev/full\n/dev/null\n/dev/pts/ptmx\n/dev/random\n/dev/tty\n/dev/urandom\n/dev/"
	    "zero\n");
	(void)fixture_shell(b, "", "mknod /tmp/mem c 1 1", 1);
	(void)fixture_shell(b, "", "echo x > /dev/null && head -c 8 /dev/urandom > /dev/null", 0);
	assert_string_equal(
	    fixture_shell(
		b, "", "perl -e 'open(P,\"+>\",\"/dev/ptmx\") or die $!; print \"pty\"'", 0),
	    "pty");
}

static void test_programs_of_the_image_run(void **state)
{
	static const struct {
		const char *program;
		const char *line;
	} programs[] = {
	    {"/usr/bin/python3", "/usr/bin/python3 -c 'import ssl, socket; "
				 "socket.gethostbyname(socket.gethostname());"
				 "ssl.create_default_context(); print(1)'"},
	    {"/usr/bin/perl", "perl -e 'print \"1\\n\"'"},
	    {"/usr/bin/git", "cd /tmp && git init -q r && echo 1"},
	    {"/usr/bin/gcc", "cd /tmp && echo 'int main(void){return 0;}' > a.c && gcc a.c && "
			     "./a.out && echo 1"},
	    {"/usr/bin/node", "node -e 'console.log(1)'"},
	    {"/usr/bin/awk", "awk 'BEGIN { print 1 }'"},
	};
	struct fixture_box *b = *state;
	char path[256];

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s",
		    fixture_current()->image[0] == '/' ? fixture_current()->image : "",
		    programs[i].program);
		if (access(path, X_OK) < 0)
			continue;
		if (strcmp(fixture_shell(b, "", programs[i].line, 0), "1\n") != 0)
			fail_msg("%s: %s", programs[i].line, b->result.out);
	}
}

#define WITH_BOX(t) cmocka_unit_test_setup_teardown(t, fixture_setup_box, fixture_teardown_box)

int conformance_isolation(void)
{
	static const struct CMUnitTest tests[] = {
	    WITH_BOX(test_no_host_file_outside_the_image),
	    WITH_BOX(test_no_host_path_in_mountinfo),
	    WITH_BOX(test_standard_directories_are_there),
	    WITH_BOX(test_root_can_change_the_image_for_itself),
	    WITH_BOX(test_no_host_process),
	    WITH_BOX(test_no_network_but_loopback),
	    WITH_BOX(test_no_abstract_sockets_of_others),
	    WITH_BOX(test_set_uid_gains_nothing),
	    WITH_BOX(test_capabilities_are_few),
	    WITH_BOX(test_forbidden_system_calls),
	    WITH_BOX(test_kernel_settings_are_not_writable),
	    WITH_BOX(test_devices_are_few_and_fixed),
	    WITH_BOX(test_programs_of_the_image_run),
	};

	return cmocka_run_group_tests_name("isolation", tests, NULL, NULL);
}

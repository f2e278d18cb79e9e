/* A program in Monty's place that somebody else has taken over: it tries to get out, and prints what came of it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static char said[4096];

static void say(const char *what, long result) {
  char line[128];
  snprintf(line, sizeof line, "%s %s\n", what, result == -1 ? strerrorname_np(errno) : "done");
  strncat(said, line, sizeof said - strlen(said) - 1);
}

#ifdef BABBLES
int main(void) { /* lengths and bytes that no message has */
  unsigned char noise[1 << 16];
  for (unsigned at = 0; at < sizeof noise; at++) noise[at] = (unsigned char)(at * 167 + 255);
  memset(noise, 0xff, 16);
  for (int times = 0; times < 64; times++)
    if (write(1, noise, sizeof noise) < 0) return 1;
  return 0;
}
#else
int main(void) {
  char go;
  char *const none[] = {NULL};
  if (write(1, "?", 1) != 1 || read(0, &go, 1) != 1) return 1; /* it is loaded; its limits are set */
  say("read a file", open("/etc/passwd", O_RDONLY));
  say("read the environment of another", open("/proc/1/environ", O_RDONLY));
  say("read the C library", open("/proc/self/exe", O_RDONLY)); /* a right that it has, but no descriptor is left */
  say("write a file", open("/tmp/moonbox-hijacked", O_CREAT | O_WRONLY, 0600));
  say("make a descriptor", dup(0));
  say("make a pipe", pipe((int[2]){0}));
  say("connect", socket(AF_INET, SOCK_STREAM, 0));
  say("local socket", socket(AF_UNIX, SOCK_STREAM, 0));
  say("execute a shell", execve("/bin/sh", none, none));
  kill(-1, SIGUSR1); /* its worker is in reach, and ignores it */
  say("raise its limit", setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, 100}));
  say("much memory", mmap(NULL, 4UL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
  say("namespaces by clone", syscall(SYS_clone, 0x10000000 | SIGCHLD, 0, 0, 0, 0));
  long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  say("fork", child);
  if (write(1, said, strlen(said)) < 0) return 2;
  syscall(SYS_ptrace, 0, 0, 0, 0);
  return write(1, "traced\n", 7) < 0;
}
#endif

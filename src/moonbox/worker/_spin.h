/* A wait for the other side of a socket that does not sleep at once; for host and worker alike.
 *
 * Where two processors are free, most of a short wait is the way into sleep and out of it again. So a side that waits polls
 * its socket for some microseconds before it sleeps. This helps only while the other side runs at the same time and answers
 * quickly. After a failure the side does not poll for a pause that grows with every further failure; so the processor time
 * that is lost stays below a few per cent. A process that has one processor never polls.
 */
#ifndef MOONBOX_SPIN_H
#define MOONBOX_SPIN_H

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

enum {
  SPIN_LONGEST = 100000,     /* nanoseconds; about what it takes to wake the other side up and have its answer */
  SPIN_FIRST_PAUSE = 500000, /* after the first failure */
  SPIN_LONGEST_PAUSE = 64000000,
  SPIN_FIRST_WAITS = 1,      /* not before: a spare worker waits long for its first run */
};

typedef struct {
  unsigned waits;
  int64_t pause, until; /* not again before then */
  int64_t spent;        /* nanoseconds in all */
} Spin;

static int64_t spin_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Whether this process may use more than one processor. */
static int spin_is_possible(void) {
#ifdef __linux__
  cpu_set_t set;
  return !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 1;
#else
  return 0;
#endif
}

/* What arrives within some microseconds, as recv returns it; -1 and EAGAIN where nothing does, or it is not tried now. */
static ssize_t spin_receive(Spin *spin, int fd, void *buffer, size_t size) {
  int64_t began = spin_clock(), now = began;
  if (++spin->waits > SPIN_FIRST_WAITS && began >= spin->until) {
    do {
      ssize_t got = recv(fd, buffer, size, MSG_DONTWAIT);
      int problem = errno;
      now = spin_clock();
      if (got >= 0 || (problem != EAGAIN && problem != EWOULDBLOCK && problem != EINTR)) {
        spin->spent += now - began < SPIN_LONGEST ? now - began : SPIN_LONGEST; /* the rest was spent by others */
        spin->pause = 0;
        errno = problem;
        return got;
      }
    } while (now - began < SPIN_LONGEST);
    spin->spent += SPIN_LONGEST;
    spin->pause = spin->pause ? spin->pause * 4 : SPIN_FIRST_PAUSE;
    if (spin->pause > SPIN_LONGEST_PAUSE) spin->pause = SPIN_LONGEST_PAUSE;
    spin->until = now + spin->pause;
  }
  errno = EAGAIN;
  return -1;
}

#endif

/* A wait for the other side of a socket that does not sleep at once: for host and worker alike.
 *
 * Where two processors are free, most of a short wait is the way into sleep and out of it again. So whoever waits looks for
 * a few microseconds whether something has come before it sleeps. That is of use only while the other side runs meanwhile
 * and answers quickly; where it does not, nobody looks again for some time, which grows with every failure: the processor
 * time that is lost this way stays below a few per cent at first, and below one in a thousand before long. A process that
 * has one processor never looks.
 */
#ifndef MOONBOX_SPIN_H
#define MOONBOX_SPIN_H

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

enum {
  SPIN_LONGEST = 100000,        /* nanoseconds; about what it takes to wake the other side up and have its answer */
  SPIN_INTERRUPTED = 40000,     /* between two looks: something else ran on this processor, which is wanted */
  SPIN_FIRST_PAUSE = 500000,    /* after the first failure; four times as long after one that follows soon */
  SPIN_BUSY_PAUSE = 4000000,    /* where the processor is wanted */
  SPIN_LONGEST_PAUSE = 256000000,
  SPIN_FORGOTTEN = 8,           /* pauses without a try, after which an earlier failure counts for less */
  SPIN_FIRST_WAITS = 3,         /* a worker that serves a single run has no use for it */
  SPIN_MOVED = 1000000,         /* after a move that ended a pause, until another one does */
  SPIN_NAPS = 64,               /* short sleeps in a row that end a pause as well */
};

typedef struct {
  unsigned waits;       /* until it is first tried */
  int64_t pause, until; /* not again before then */
  int64_t spent;        /* nanoseconds in all */
  int64_t began;        /* the last wait */
  int64_t moved;        /* when a move last ended a pause */
  int processor;        /* the one it woke up on last, counted from 1; 0: not known */
  unsigned naps;        /* short sleeps in a row */
  unsigned tries, hits;
} Spin;

static int64_t spin_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* How many processors this thread may use. */
static int spin_processors(void) {
#ifdef __linux__
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
#else
  return 1; /* not known: nobody spins */
#endif
}

/* Whether its control group gives the process more than the time of one processor; so where nothing says otherwise. */
static int spin_has_quota(void) {
  long long quota, period;
  FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (!file) return 1;
  int told = fscanf(file, "%lld %lld", &quota, &period); /* "max" is no number */
  fclose(file);
  return told != 2 || quota > period;
}

static void spin_failed(Spin *spin, int64_t now, int busy) {
  spin->pause = spin->pause ? spin->pause * 4 : SPIN_FIRST_PAUSE;
  if (busy && spin->pause < SPIN_BUSY_PAUSE) spin->pause = SPIN_BUSY_PAUSE;
  if (spin->pause > SPIN_LONGEST_PAUSE) spin->pause = SPIN_LONGEST_PAUSE;
  spin->until = now + spin->pause;
}

/* What comes within a few microseconds, and not after `deadline` (below 0: there is none), as recv does; -1 and EAGAIN
 * where nothing has come, or it is not tried now. */
static ssize_t spin_receive(Spin *spin, int fd, void *buffer, size_t size, int64_t deadline) {
  if (spin->waits < SPIN_FIRST_WAITS) {
    spin->waits++;
    errno = EAGAIN;
    return -1;
  }
  int64_t began = spin->began = spin_clock(), now = began, before, end = began + SPIN_LONGEST;
  if (began < spin->until) {
    errno = EAGAIN;
    return -1;
  }
  if (began - spin->until > spin->pause * SPIN_FORGOTTEN) spin->pause /= 4; /* it had nothing to wait for */
  if (deadline >= 0 && deadline < end) end = deadline;
  spin->tries++;
  do {
    before = now;
    ssize_t got = recv(fd, buffer, size, MSG_DONTWAIT);
    int problem = errno;
    now = spin_clock();
    spin->spent += now - before < SPIN_INTERRUPTED ? now - before : 0; /* else most of it was spent by others */
    if (got >= 0 || (problem != EAGAIN && problem != EWOULDBLOCK && problem != EINTR)) {
      spin->hits += got > 0;
      spin->pause = 0;
      errno = problem;
      return got;
    }
  } while (now < end && now - before < SPIN_INTERRUPTED);
  spin_failed(spin, now, now - before >= SPIN_INTERRUPTED);
  errno = EAGAIN;
  return -1;
}

/* After a sleep that may have been short enough to be spared. Two that share a processor look in vain: the other side cannot
 * answer meanwhile. So whoever has been moved to another processor tries again at once; and so does, now and again, who
 * sleeps for a short time again and again. */
static void spin_slept(Spin *spin) {
#ifdef __linux__
  if (!spin->pause) return;
  int before = spin->processor;
  int64_t now = spin_clock();
  spin->processor = sched_getcpu() + 1;
  if (now - spin->began > SPIN_LONGEST) {
    spin->naps = 0;
    return;
  }
  int is_moved = spin->processor != before && spin->processor && before && now - spin->moved > SPIN_MOVED;
  if (!is_moved && ++spin->naps < SPIN_NAPS) return;
  if (is_moved) spin->moved = now;
  spin->naps = 0;
  spin->until = 0;
#else
  (void)spin;
#endif
}

#endif

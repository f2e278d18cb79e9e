/* The host's end of a worker's socket: one exchange, which sends what there is to send and waits for what comes back.
 *
 * Optional: link.py does the same in Python, one system call at a time. It moves bytes between the socket and Python
 * objects, and never looks at them; so nothing that a worker sends is interpreted here.
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <structmember.h>
#include <sys/socket.h>
#include <time.h>

#include "_spin.h"

/* On the stack, which is small in the threads of some C libraries; link.py reads what is longer. */
enum { HEADER = 5, CHUNK = 1 << 14, LONGEST = 1 << 30, LOOK_AGAIN = 100000000 };

/* Of moves of a worker to another processor; the times in nanoseconds. */
enum {
  MOVE_AFTER = 2,            /* answers in a row that tell that it shares the host's */
  MOVED_WELL = 16,           /* answers in a row that tell that it does not: an earlier move was of use */
  MOVE_FIRST_PAUSE = 1000000,
  MOVE_LONGEST_PAUSE = 16000000,
  MOVE_IF_WITHIN = 50000,    /* after the host has gone to sleep, for an answer that it had looked for in vain */
  MOVE_SOON = 1000000,       /* after an answer; later nobody knows what the worker does, or whether it is there */
};

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Wait until there is something to read, as poll does; below 0 stands for no deadline. */
static int wait_for(int fd, double deadline) {
  struct pollfd poller = {fd, POLLIN, 0};
  double left = deadline < 0 ? 0 : deadline - now();
  if (left < 0) left = 0;
#ifdef __linux__
  if (left > LONGEST) left = LONGEST;
  struct timespec rest = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  return ppoll(&poller, 1, deadline < 0 ? NULL : &rest, NULL);
#else
  /* Rounded up, so that nobody wakes up too early again and again. */
  return poll(&poller, 1, deadline < 0 ? -1 : left >= LONGEST / 1000 ? LONGEST : (int)(left * 1000) + (left > 0));
#endif
}

/* A socket of the host, and what is known of how quickly its worker answers, and where. */
typedef struct {
  PyObject_HEAD
  int fd;
  PyObject *unpack;
  Spin spin;
  int64_t looked; /* when the number of processors was last looked at */
  int processors;
  int worker;             /* its process; 0 where it cannot be moved */
  unsigned shared, apart; /* answers in a row from a worker that had the host's processor, and another one */
  int64_t answered;       /* the last of the former */
  int64_t pause, until;   /* it is not moved before then */
  unsigned moves;
} Wire;

static int has_quota;      /* more than the time of one processor */
static atomic_int waiting; /* threads that wait for a worker now; the workers need processors as well */

static int is_nothing(void) { return errno == EAGAIN || errno == EWOULDBLOCK; }

/* Before the host sleeps; as recv. `asked`: something was sent just now. It does not hold the interpreter's lock. */
static ssize_t receive_soon(Wire *wire, char *buffer, size_t size, double deadline, int asked) {
  Spin *spin = &wire->spin;
  if (asked && wire->processors > 1) {
    ssize_t got = recv(wire->fd, buffer, size, MSG_DONTWAIT);
    if (got >= 0 || !is_nothing()) {
      wire->answered = spin_clock();
      wire->shared++;
      wire->apart = 0;
      return got;
    }
  }
  wire->shared = 0;
  if (spin->waits < SPIN_FIRST_WAITS) { /* as spin_receive does, before anything is looked at */
    spin->waits++;
    errno = EAGAIN;
    return -1;
  }
  int64_t now = spin_clock();
  if (!has_quota || now < spin->until) {
    errno = EAGAIN;
    return -1;
  }
  if (!wire->looked || spin->pause || now - wire->looked > LOOK_AGAIN) {
    wire->processors = spin_processors();
    wire->looked = now;
    if (wire->processors < 2) spin_failed(spin, now, 1);
  }
  ssize_t got = -1;
  errno = EAGAIN;
  if (waiting < wire->processors)
    got = spin_receive(spin, wire->fd, buffer, size, deadline < 0 ? -1 : (int64_t)(deadline * 1e9));
  if (got > 0 && ++wire->apart > MOVED_WELL) wire->pause = 0;
  return got;
}

/* The host looked in vain, slept from then on, and has its answer now. If that came at once, the worker waited for the
 * processor. */
static void note_sleep(Wire *wire, int64_t slept) {
  int64_t now = spin_clock();
  if (now - slept > MOVE_IF_WITHIN) return;
  wire->answered = now;
  wire->shared = MOVE_AFTER;
}

/* Whether the worker is to be woken up on another processor than the host's.
 *
 * Some kernels wake the receiver of a message on the processor of its sender, which they expect to sleep at once; those of
 * virtual machines above all, where processors seem to share no memory cache. Then worker and host take turns on one
 * processor beside an idle one, and an answer is there when its request has been sent. */
static int is_to_move(Wire *wire) {
  if (wire->shared < MOVE_AFTER || !wire->worker || waiting > 1) return 0;
  int64_t now = spin_clock();
  if (now < wire->until || now - wire->answered > MOVE_SOON) return 0;
  wire->pause = wire->pause ? wire->pause * 4 : MOVE_FIRST_PAUSE;
  if (wire->pause > MOVE_LONGEST_PAUSE) wire->pause = MOVE_LONGEST_PAUSE;
  wire->until = now + wire->pause;
  return 1;
}

/* As send. The worker may use all of its processors again as soon as it is awake. */
static ssize_t send_and_move(Wire *wire, const char *data, size_t size) {
#ifdef __linux__
  cpu_set_t all, others;
  int own = sched_getcpu(), moves = 0, worker = wire->worker;
  if (own >= 0 && !sched_getaffinity(worker, sizeof all, &all)) {
    others = all;
    CPU_CLR(own, &others);
    moves = CPU_COUNT(&others) && !sched_setaffinity(worker, sizeof others, &others);
  }
  ssize_t sent = send(wire->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  int problem = errno;
  if (moves) {
    sched_setaffinity(worker, sizeof all, &all);
    wire->spin.until = 0;
    wire->moves++;
  } else {
    wire->worker = 0;
  }
  errno = problem;
  return sent;
#else
  return send(wire->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
#endif
}

/* What has arrived, as (kind, payload) where it is one whole frame, else as bytes. What its first bytes say is for `unpack`
 * to find out, which is Python's own: here they are only moved. */
static PyObject *arrived(Wire *wire, const char *data, Py_ssize_t size) {
  if (size < HEADER) return PyBytes_FromStringAndSize(data, size);
  PyObject *start = PyBytes_FromStringAndSize(data, HEADER), *head = NULL, *payload = NULL, *frame = NULL;
  if (start) head = PyObject_CallOneArg(wire->unpack, start);
  Py_XDECREF(start);
  if (!head) return NULL;
  PyObject *length = PyTuple_CheckExact(head) && PyTuple_GET_SIZE(head) == 2 ? PyTuple_GET_ITEM(head, 1) : NULL;
  if (length && PyLong_CheckExact(length) && PyLong_AsSsize_t(length) == size - HEADER) {
    payload = PyBytes_FromStringAndSize(data + HEADER, size - HEADER);
    if (payload) frame = PyTuple_Pack(2, PyTuple_GET_ITEM(head, 0), payload);
    Py_XDECREF(payload);
  } else if (!PyErr_Occurred()) {
    frame = PyBytes_FromStringAndSize(data, size);
  }
  Py_DECREF(head);
  return frame;
}

/* Python's handlers have run, in the middle of an exchange; NULL where one of them raised, which ends it. */
static PyThreadState *after_signals(PyThreadState *state) {
  PyEval_RestoreThread(state);
  if (!PyErr_CheckSignals()) return PyEval_SaveThread();
  atomic_fetch_sub(&waiting, 1);
  return NULL;
}

/* exchange(data, deadline): what has arrived, b"" when the peer has hung up, None at the deadline; or, where not all of the
 * data can be sent at once, how many bytes were. The deadline is on the monotonic clock; below 0: none. */
static PyObject *exchange(Wire *wire, PyObject *const *arguments, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "exchange takes 2 arguments");
  double deadline = PyFloat_AsDouble(arguments[1]);
  int fd = wire->fd;
  char *data;
  Py_ssize_t size;
  if (PyErr_Occurred() || PyBytes_AsStringAndSize(arguments[0], &data, &size) < 0) return NULL;
  ssize_t sent = 0, got = -1;
  int problem = 0, ready = 1;
  char buffer[CHUNK];
  PyThreadState *state = PyEval_SaveThread();
  atomic_fetch_add(&waiting, 1);
  if (size) {
    do sent = is_to_move(wire) ? send_and_move(wire, data, (size_t)size)
                               : send(fd, data, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) {
      problem = is_nothing() ? 0 : errno;
      sent = 0;
    }
  }
  int64_t slept = 0;
  if (!problem && sent == size) {
    unsigned tries = wire->spin.tries;
    got = receive_soon(wire, buffer, sizeof buffer, deadline, size > 0);
    if (got < 0 && !is_nothing()) problem = errno;
    if (got < 0 && tries != wire->spin.tries) { /* a signal that came meanwhile would not end the sleep */
      if (!(state = after_signals(state))) return NULL;
      slept = spin_clock();
    }
  }
  while (!problem && got < 0 && sent == size) {
    ready = wait_for(fd, deadline);
    if (ready > 0) got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (ready == 0 || got >= 0) break;
    if (errno == EINTR) {
      if (!(state = after_signals(state))) return NULL;
    } else if (!is_nothing()) {
      problem = errno;
    }
  }
  if (slept && got > 0) note_sleep(wire, slept);
  atomic_fetch_sub(&waiting, 1);
  PyEval_RestoreThread(state);
  if (problem) {
    errno = problem;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  if (sent < size) return PyLong_FromSsize_t(sent);
  if (got < 0) Py_RETURN_NONE;
  return arrived(wire, buffer, got);
}

/* fill(start, size, deadline): so many bytes, which begin with these, as they arrive; fewer where there are no more at the
 * deadline, or at all. */
static PyObject *fill(Wire *wire, PyObject *const *arguments, Py_ssize_t count) {
  if (count != 3) return PyErr_Format(PyExc_TypeError, "fill takes 3 arguments");
  char *start;
  Py_ssize_t filled, size = PyLong_AsSsize_t(arguments[1]);
  double deadline = PyFloat_AsDouble(arguments[2]);
  if (PyErr_Occurred() || PyBytes_AsStringAndSize(arguments[0], &start, &filled) < 0) return NULL;
  if (size < filled) return PyErr_Format(PyExc_ValueError, "more bytes than are to be filled");
  PyObject *whole = PyBytes_FromStringAndSize(NULL, size);
  if (!whole) return NULL;
  char *data = PyBytes_AS_STRING(whole);
  memcpy(data, start, (size_t)filled);
  int problem = 0, over = 0;
  PyThreadState *state = PyEval_SaveThread();
  while (filled < size && !over && !problem) {
    ssize_t got = recv(wire->fd, data + filled, (size_t)(size - filled), MSG_DONTWAIT);
    if (got > 0) {
      filled += got;
    } else if (got == 0) {
      over = 1;
    } else if (is_nothing()) {
      int ready = wait_for(wire->fd, deadline);
      over = ready == 0;
      problem = ready < 0 ? errno : 0;
    } else {
      problem = errno;
    }
    if (problem == EINTR) {
      problem = 0;
      PyEval_RestoreThread(state);
      if (PyErr_CheckSignals()) {
        Py_DECREF(whole);
        return NULL;
      }
      state = PyEval_SaveThread();
    }
  }
  PyEval_RestoreThread(state);
  if (problem) {
    Py_DECREF(whole);
    errno = problem;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  if (filled < size && _PyBytes_Resize(&whole, filled) < 0) return NULL;
  return whole;
}

/* is_quiet(): whether the peer holds its end and has nothing to say. */
static PyObject *is_quiet(Wire *wire, PyObject *_) {
  (void)_;
  char byte;
  return PyBool_FromLong(recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && is_nothing());
}

static PyObject *wire_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  int fd, worker;
  PyObject *unpack;
  if (names && PyDict_GET_SIZE(names)) return PyErr_Format(PyExc_TypeError, "Wire takes no keyword arguments");
  if (!PyArg_ParseTuple(arguments, "iOi", &fd, &unpack, &worker)) return NULL;
  Wire *wire = (Wire *)type->tp_alloc(type, 0);
  if (!wire) return NULL;
  wire->fd = fd;
  wire->worker = worker;
  wire->unpack = Py_NewRef(unpack);
  return (PyObject *)wire;
}

static void wire_dealloc(Wire *wire) {
  Py_XDECREF(wire->unpack);
  Py_TYPE(wire)->tp_free(wire);
}

static PyMethodDef WIRE_METHODS[] = {{"exchange", (PyCFunction)(void (*)(void))exchange, METH_FASTCALL, NULL},
                                     {"fill", (PyCFunction)(void (*)(void))fill, METH_FASTCALL, NULL},
                                     {"is_quiet", (PyCFunction)is_quiet, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyMemberDef WIRE_MEMBERS[] = {{"tries", T_UINT, offsetof(Wire, spin.tries), READONLY, "waits that began awake"},
                                     {"hits", T_UINT, offsetof(Wire, spin.hits), READONLY, "those that ended so"},
                                     {"moves", T_UINT, offsetof(Wire, moves), READONLY, "of the worker to another processor"},
                                     {NULL, 0, 0, 0, NULL}};

/* Wire(fd, unpack, worker): exchanges over that socket, which stays its caller's; `unpack` reads the start of a frame as
 * (kind, length); `worker` is the process at the other end, 0 where it is no other one. One thread at a time uses it. */
static PyTypeObject WIRE = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "moonbox.worker._wire.Wire",
    .tp_basicsize = sizeof(Wire),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = wire_new,
    .tp_dealloc = (destructor)wire_dealloc,
    .tp_methods = WIRE_METHODS,
    .tp_members = WIRE_MEMBERS,
};

/* Raised with every change of what Python calls here; native.py has the same. */
enum { REVISION = 4 };

static void forget_waiting(void) { waiting = 0; }

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_wire", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__wire(void) {
  has_quota = spin_has_quota();
  pthread_atfork(NULL, NULL, forget_waiting); /* a child has one thread */
  PyObject *module = PyType_Ready(&WIRE) < 0 ? NULL : PyModule_Create(&MODULE);
  if (module && PyModule_AddObjectRef(module, "Wire", (PyObject *)&WIRE) < 0) Py_CLEAR(module);
  if (module && PyModule_AddIntConstant(module, "MAY_SPIN", has_quota) < 0) Py_CLEAR(module);
  if (module && PyModule_AddIntConstant(module, "REVISION", REVISION) < 0) Py_CLEAR(module);
  return module;
}

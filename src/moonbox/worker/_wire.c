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
#include <stdatomic.h>
#include <structmember.h>
#include <sys/socket.h>
#include <time.h>

#include "_spin.h"

/* On the stack, which is small in the threads of some C libraries; link.py reads what is longer. */
enum { HEADER = 5, CHUNK = 1 << 14, LONGEST = 1 << 30, LOOK_AGAIN = 100000000 };

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

/* A socket of the host, and what is known of how quickly its worker answers. */
typedef struct {
  PyObject_HEAD
  int fd;
  PyObject *unpack;
  Spin spin;
  int64_t looked; /* when the number of processors was last looked at */
  int processors;
} Wire;

static int has_quota;       /* more than the time of one processor */
static atomic_int spinning; /* threads that spin now: one processor must be left for the workers */

/* Before the host sleeps; as recv. It does not hold the interpreter's lock. */
static ssize_t receive_soon(Wire *wire, char *buffer, size_t size, double deadline) {
  Spin *spin = &wire->spin;
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
  if (atomic_fetch_add(&spinning, 1) < wire->processors - 1)
    got = spin_receive(spin, wire->fd, buffer, size, deadline < 0 ? -1 : (int64_t)(deadline * 1e9));
  int problem = errno;
  atomic_fetch_sub(&spinning, 1);
  errno = problem;
  return got;
}

static int is_nothing(void) { return errno == EAGAIN || errno == EWOULDBLOCK; }

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
  if (size) {
    do sent = send(fd, data, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) {
      problem = is_nothing() ? 0 : errno;
      sent = 0;
    }
  }
  if (!problem && sent == size) {
    unsigned tries = wire->spin.tries;
    got = receive_soon(wire, buffer, sizeof buffer, deadline);
    if (got < 0 && !is_nothing()) problem = errno;
    if (got < 0 && tries != wire->spin.tries) { /* a signal that came meanwhile would not end the sleep */
      PyEval_RestoreThread(state);
      if (PyErr_CheckSignals()) return NULL;
      state = PyEval_SaveThread();
    }
  }
  while (!problem && got < 0 && sent == size) {
    ready = wait_for(fd, deadline);
    if (ready > 0) got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (ready == 0 || got >= 0) break;
    if (errno == EINTR) {
      PyEval_RestoreThread(state);
      if (PyErr_CheckSignals()) return NULL;
      state = PyEval_SaveThread();
    } else if (!is_nothing()) {
      problem = errno;
    }
  }
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
  int fd;
  PyObject *unpack;
  if (names && PyDict_GET_SIZE(names)) return PyErr_Format(PyExc_TypeError, "Wire takes no keyword arguments");
  if (!PyArg_ParseTuple(arguments, "iO", &fd, &unpack)) return NULL;
  Wire *wire = (Wire *)type->tp_alloc(type, 0);
  if (!wire) return NULL;
  wire->fd = fd;
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
                                     {NULL, 0, 0, 0, NULL}};

/* Wire(fd, unpack): exchanges over that socket, which stays its caller's; `unpack` reads the start of a frame as (kind,
 * length). One thread at a time uses it. */
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
enum { REVISION = 3 };

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_wire", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__wire(void) {
  has_quota = spin_has_quota();
  PyObject *module = PyType_Ready(&WIRE) < 0 ? NULL : PyModule_Create(&MODULE);
  if (module && PyModule_AddObjectRef(module, "Wire", (PyObject *)&WIRE) < 0) Py_CLEAR(module);
  if (module && PyModule_AddIntConstant(module, "MAY_SPIN", has_quota) < 0) Py_CLEAR(module);
  if (module && PyModule_AddIntConstant(module, "REVISION", REVISION) < 0) Py_CLEAR(module);
  return module;
}

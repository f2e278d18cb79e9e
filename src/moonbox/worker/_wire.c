/* The host's end of a worker's socket: one exchange, which sends what there is to send and waits for what comes back.
 *
 * Optional: link.py does the same in Python, one system call at a time. Of what a worker sends it reads only
 * where a frame ends.
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "_spin.h"

enum { HEADER = 5, CHUNK = 1 << 16, LONGEST_WAIT = 1 << 30 };

typedef struct {
  PyObject_HEAD
  int fd;
  Spin spin;
} Wire;

static int may_spin;
static int spinning; /* threads that poll now: with several, each takes the processor that another's worker needs */

static int is_nothing(void) { return errno == EAGAIN || errno == EWOULDBLOCK; }

/* Wait until there is something to read, as poll does; a deadline below 0 stands for none. */
static int wait_for(int fd, double deadline) {
  struct pollfd poller = {fd, POLLIN, 0};
  double left = deadline < 0 ? 0 : deadline - (double)spin_clock() / 1e9;
  if (left < 0) left = 0;
  if (left > LONGEST_WAIT / 1000) left = LONGEST_WAIT / 1000;
  /* Rounded up: it would else wake up too early again and again. */
  return poll(&poller, 1, deadline < 0 ? -1 : (int)(left * 1000) + (left > 0));
}

/* What arrives while this polls; -1 and EAGAIN where nothing does, or another thread polls already. */
static ssize_t poll_briefly(Wire *wire, char *at, size_t room) {
  ssize_t got = -1;
  errno = EAGAIN;
  if (!may_spin) return got;
  if (!__atomic_fetch_add(&spinning, 1, __ATOMIC_RELAXED)) got = spin_receive(&wire->spin, wire->fd, at, room);
  int problem = errno;
  __atomic_fetch_sub(&spinning, 1, __ATOMIC_RELAXED);
  errno = problem;
  return got;
}

/* The rest of a payload, as far as it comes: until the deadline, a signal, or the peer's end. Its size then. */
static Py_ssize_t fill(Wire *wire, char *payload, Py_ssize_t filled, Py_ssize_t length, double deadline) {
  PyThreadState *state = PyEval_SaveThread();
  while (filled < length) {
    size_t room = (size_t)(length - filled);
    ssize_t got = recv(wire->fd, payload + filled, room, MSG_DONTWAIT);
    if (got < 0 && is_nothing()) got = poll_briefly(wire, payload + filled, room);
    if (got > 0) filled += got;
    else if (got == 0 || !is_nothing() || wait_for(wire->fd, deadline) <= 0) break;
  }
  PyEval_RestoreThread(state);
  return filled;
}

static int keep(PyObject *buffer, const char *data, Py_ssize_t size) {
  Py_ssize_t before = PyByteArray_GET_SIZE(buffer);
  if (PyByteArray_Resize(buffer, before + size) < 0) return 0;
  memcpy(PyByteArray_AS_STRING(buffer) + before, data, (size_t)size);
  return 1;
}

/* (kind, payload) of the frame that begins with these bytes; True where they are none, or not all of it comes: then all that
 * came is in the buffer. */
static PyObject *framed(Wire *wire, const char *data, Py_ssize_t got, double deadline, PyObject *buffer, Py_ssize_t largest) {
  const unsigned char *head = (const unsigned char *)data;
  Py_ssize_t length = 0;
  if (got >= HEADER) length = (Py_ssize_t)(head[1] | (uint32_t)head[2] << 8 | (uint32_t)head[3] << 16 | (uint32_t)head[4] << 24);
  if (got < HEADER || length < got - HEADER || length > largest) {
    if (!keep(buffer, data, got)) return NULL;
    Py_RETURN_TRUE;
  }
  PyObject *payload = PyBytes_FromStringAndSize(NULL, length);
  if (!payload) return NULL;
  memcpy(PyBytes_AS_STRING(payload), data + HEADER, (size_t)(got - HEADER));
  Py_ssize_t filled = got - HEADER;
  if (filled < length) filled = fill(wire, PyBytes_AS_STRING(payload), filled, length, deadline);
  if (filled == length) return Py_BuildValue("(iN)", (int)head[0], payload);
  int kept = keep(buffer, data, HEADER) && keep(buffer, PyBytes_AS_STRING(payload), filled);
  Py_DECREF(payload);
  if (!kept || PyErr_CheckSignals()) return NULL;
  Py_RETURN_TRUE;
}

/* exchange(data, deadline, buffer, largest): the next frame, (kind, payload), where it is no larger than that and nothing
 * comes behind it; True where what came is in the buffer instead, a bytearray; b"" when the peer has hung up; None at the
 * deadline; or, where not all of the data can be sent at once, how many bytes were. The deadline is on the monotonic clock;
 * below 0: none. */
static PyObject *exchange(Wire *wire, PyObject *const *arguments, Py_ssize_t count) {
  char *data, buffer[CHUNK];
  Py_ssize_t size;
  if (count != 4 || !PyByteArray_Check(arguments[2])) return PyErr_Format(PyExc_TypeError, "exchange takes other arguments");
  double deadline = PyFloat_AsDouble(arguments[1]);
  Py_ssize_t largest = PyLong_AsSsize_t(arguments[3]);
  if (PyErr_Occurred() || PyBytes_AsStringAndSize(arguments[0], &data, &size) < 0) return NULL;
  ssize_t sent = 0, got = -1;
  int problem = 0, interrupted = 0, ready = 1;
  PyThreadState *state = PyEval_SaveThread();
  if (size) {
    do sent = send(wire->fd, data, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) {
      problem = is_nothing() ? 0 : errno;
      sent = 0;
    }
  }
  if (!problem && sent == size) {
    got = poll_briefly(wire, buffer, sizeof buffer);
    while (got < 0 && is_nothing() && ready > 0 && !interrupted) {
      ready = wait_for(wire->fd, deadline);
      interrupted = ready < 0 && errno == EINTR;
      if (ready > 0) got = recv(wire->fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (ready == 0) errno = EAGAIN;
      if (interrupted) { /* Python's signal handlers run; where none raises, the wait goes on */
        PyEval_RestoreThread(state);
        if (PyErr_CheckSignals()) return NULL;
        state = PyEval_SaveThread();
        interrupted = 0, ready = 1, errno = EAGAIN;
      }
    }
    if (got < 0 && !is_nothing()) problem = errno;
  }
  PyEval_RestoreThread(state);
  if (problem) {
    errno = problem;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  if (sent < size) return PyLong_FromSsize_t(sent);
  if (got < 0) Py_RETURN_NONE;
  return got ? framed(wire, buffer, got, deadline, arguments[2], largest) : PyBytes_FromStringAndSize(buffer, 0);
}

static PyObject *wire_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  int fd;
  (void)names;
  if (!PyArg_ParseTuple(arguments, "i", &fd)) return NULL;
  Wire *wire = (Wire *)type->tp_alloc(type, 0);
  if (wire) wire->fd = fd;
  return (PyObject *)wire;
}

static PyMethodDef WIRE_METHODS[] = {{"exchange", (PyCFunction)(void (*)(void))exchange, METH_FASTCALL, NULL},
                                     {NULL, NULL, 0, NULL}};

/* Wire(fd): exchanges over that socket, which stays its caller's. One thread at a time uses it. */
static PyTypeObject WIRE = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "moonbox.worker._wire.Wire",
    .tp_basicsize = sizeof(Wire),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = wire_new,
    .tp_methods = WIRE_METHODS,
};

/* Raised with every change of what Python calls here; native.py has the same. */
enum { REVISION = 6 };

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_wire", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__wire(void) {
  may_spin = spin_is_possible();
  PyObject *module = PyType_Ready(&WIRE) < 0 ? NULL : PyModule_Create(&MODULE);
  if (module && PyModule_AddObjectRef(module, "Wire", (PyObject *)&WIRE) < 0) Py_CLEAR(module);
  if (module && PyModule_AddIntConstant(module, "REVISION", REVISION) < 0) Py_CLEAR(module);
  return module;
}

/* The host's end of a worker's socket: one exchange, which sends what there is to send and waits for what comes back.
 *
 * Optional: link.py does the same in Python, one system call at a time. This moves bytes between the socket and Python
 * objects without interpreting them.
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "_spin.h"

enum { CHUNK = 1 << 16, LONGEST_WAIT = 1 << 30 };

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

/* exchange(data, deadline): the bytes that have arrived, b"" when the peer has hung up, None at the deadline; or, where not
 * all of the data can be sent at once, how many bytes were. The deadline is on the monotonic clock; below 0: none. */
static PyObject *exchange(Wire *wire, PyObject *const *arguments, Py_ssize_t count) {
  char *data, buffer[CHUNK];
  Py_ssize_t size;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "exchange takes 2 arguments");
  double deadline = PyFloat_AsDouble(arguments[1]);
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
    errno = EAGAIN;
    if (may_spin) {
      if (!__atomic_fetch_add(&spinning, 1, __ATOMIC_RELAXED)) got = spin_receive(&wire->spin, wire->fd, buffer, sizeof buffer);
      int problem_of_spin = errno;
      __atomic_fetch_sub(&spinning, 1, __ATOMIC_RELAXED);
      errno = problem_of_spin;
    }
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
  return PyBytes_FromStringAndSize(buffer, got);
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
enum { REVISION = 5 };

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_wire", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__wire(void) {
  may_spin = spin_is_possible();
  PyObject *module = PyType_Ready(&WIRE) < 0 ? NULL : PyModule_Create(&MODULE);
  if (module && PyModule_AddObjectRef(module, "Wire", (PyObject *)&WIRE) < 0) Py_CLEAR(module);
  if (module && PyModule_AddIntConstant(module, "REVISION", REVISION) < 0) Py_CLEAR(module);
  return module;
}

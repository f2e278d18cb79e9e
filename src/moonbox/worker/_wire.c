/* The host's end of a worker's socket: one exchange, which sends what there is to send and waits for what comes back.
 *
 * Optional: link.py does the same in Python, one system call at a time. It moves bytes between the socket and Python
 * objects, never looks at them, and holds no state; so nothing that a worker sends is interpreted here.
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

/* On the stack, which is small in the threads of some C libraries; link.py reads what is longer. */
enum { CHUNK = 1 << 14, LONGEST = 1 << 30 };

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Milliseconds until then, rounded up so that nobody wakes up too early again and again; -1 stands for no deadline. */
static int rest(double deadline) {
  if (deadline < 0) return -1;
  double left = (deadline - now()) * 1000.0;
  return left <= 0 ? 0 : left >= LONGEST ? LONGEST : (int)left + 1;
}

/* exchange(fd, data, deadline): bytes that have arrived, b"" when the peer has hung up, None at the deadline; or, where
 * not all of the data can be sent at once, how many bytes were. The deadline is on the monotonic clock; below 0: none. */
static PyObject *exchange(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
  (void)module;
  if (count != 3) return PyErr_Format(PyExc_TypeError, "exchange takes 3 arguments");
  int fd = (int)PyLong_AsLong(arguments[0]);
  double deadline = PyFloat_AsDouble(arguments[2]);
  char *data;
  Py_ssize_t size;
  if (PyErr_Occurred() || PyBytes_AsStringAndSize(arguments[1], &data, &size) < 0) return NULL;
  ssize_t sent = 0, got = -1;
  int problem = 0, ready = 1;
  char buffer[CHUNK];
  PyThreadState *state = PyEval_SaveThread();
  if (size) {
    do sent = send(fd, data, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) {
      problem = errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
      sent = 0;
    }
  }
  while (!problem && sent == size) {
    struct pollfd poller = {fd, POLLIN, 0};
    ready = poll(&poller, 1, rest(deadline));
    if (ready > 0) got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (ready == 0 || got >= 0) break;
    if (errno == EINTR) {
      PyEval_RestoreThread(state);
      if (PyErr_CheckSignals()) return NULL;
      state = PyEval_SaveThread();
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
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
  return PyBytes_FromStringAndSize(buffer, got);
}

static PyMethodDef METHODS[] = {{"exchange", (PyCFunction)(void (*)(void))exchange, METH_FASTCALL, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_wire", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__wire(void) { return PyModule_Create(&MODULE); }

/* Values on their way to a script, copied and measured in one pass: the native part of values.py. Values that have come from
 * one, looked at. And records, made quickly, and threads that hand over to each other.
 *
 * Optional: values.py does the same in Python, and whatever is not ordinary. It reads Python objects of the host only,
 * of exact built-in types, so that no code of a tool's author runs on the way; no bytes are parsed here.
 *
 * Making objects may start the garbage collector, and with it anybody's finalizers. So each container is copied first,
 * and only the copy, which nobody else knows, is walked.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <structmember.h>

enum { DEEPEST = 200 };

typedef struct {
  Py_ssize_t max_string, max_array;
  int allow_nan;
} Bounds;

/* 1: as it is; 0: a container; -1: not ordinary, or too large. */
static int is_scalar(PyObject *value, const Bounds *bounds) {
  PyTypeObject *kind = Py_TYPE(value);
  if (kind == &PyUnicode_Type) return PyUnicode_GET_LENGTH(value) <= bounds->max_string / 4 ? 1 : -1;
  if (kind == &PyLong_Type) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? -1 : 1;
  }
  if (kind == &PyFloat_Type) return bounds->allow_nan || isfinite(PyFloat_AS_DOUBLE(value)) ? 1 : -1;
  if (kind == &PyBool_Type || value == Py_None) return 1;
  if (kind == &PyBytes_Type) return PyBytes_GET_SIZE(value) <= bounds->max_string / 4 ? 1 : -1;
  return kind == &PyList_Type || kind == &PyDict_Type || kind == &PyTuple_Type ? 0 : -1;
}

/* A new reference; NULL without an exception where values.py must do it. */
static PyObject *copied(PyObject *value, const Bounds *bounds, Py_ssize_t depth);

static PyObject *copied_list(PyObject *value, const Bounds *bounds, Py_ssize_t depth) {
  PyObject *copy = PySequence_List(value);
  if (!copy) return NULL;
  Py_ssize_t size = PyList_GET_SIZE(copy);
  if (size > bounds->max_array) goto unusual;
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject *item = PyList_GET_ITEM(copy, i);
    int scalar = is_scalar(item, bounds);
    if (scalar > 0) continue;
    PyObject *inner = scalar ? NULL : copied(item, bounds, depth - 1);
    if (!inner) goto unusual;
    PyList_SET_ITEM(copy, i, inner);
    Py_DECREF(item);
  }
  return copy;
unusual:
  Py_DECREF(copy);
  return NULL;
}

static PyObject *copied_dict(PyObject *value, const Bounds *bounds, Py_ssize_t depth) {
  PyObject *copy = PyDict_Copy(value), *key, *item;
  Py_ssize_t at = 0;
  if (!copy) return NULL;
  if (PyDict_GET_SIZE(copy) > bounds->max_array) goto unusual;
  while (PyDict_Next(copy, &at, &key, &item)) {
    if (Py_TYPE(key) != &PyUnicode_Type) goto unusual;
    int scalar = is_scalar(item, bounds);
    if (scalar > 0) continue;
    PyObject *inner = scalar ? NULL : copied(item, bounds, depth - 1);
    if (!inner) goto unusual;
    int failed = PyDict_SetItem(copy, key, inner); /* of a key that is there: allowed while we go over it */
    Py_DECREF(inner);
    if (failed) goto unusual;
  }
  return copy;
unusual:
  Py_DECREF(copy);
  return NULL;
}

static PyObject *copied(PyObject *value, const Bounds *bounds, Py_ssize_t depth) {
  if (depth <= 0) return NULL;
  return Py_TYPE(value) == &PyDict_Type ? copied_dict(value, bounds, depth) : copied_list(value, bounds, depth);
}

/* lowered(value, max_string, max_array, max_depth, allow_nan): the plain value, or NotImplemented where values.py must
 * look at it. */
static PyObject *py_lowered(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
  (void)module;
  if (count != 5) return PyErr_Format(PyExc_TypeError, "lowered takes 5 arguments, not %zd", count);
  PyObject *value = arguments[0];
  Py_ssize_t max_depth = PyLong_AsSsize_t(arguments[3]);
  Bounds bounds = {PyLong_AsSsize_t(arguments[1]), PyLong_AsSsize_t(arguments[2]), arguments[4] == Py_True};
  if (PyErr_Occurred()) return NULL;
  int scalar = is_scalar(value, &bounds);
  if (scalar > 0) return Py_NewRef(value);
  if (scalar) return Py_NewRef(Py_NotImplemented);
  int collects = PyGC_Disable(); /* as below */
  PyObject *copy = copied(value, &bounds, max_depth < DEEPEST ? max_depth : DEEPEST);
  if (collects) PyGC_Enable();
  if (copy || PyErr_Occurred()) return copy;
  return Py_NewRef(Py_NotImplemented);
}

/* without_collecting(function, argument): what that function in C gives, which neither calls Python nor lets other threads
 * run. What a parser makes is all in use: the collector would only look through it again and again while it grows. */
static PyObject *py_without_collecting(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
  (void)module;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "without_collecting takes 2 arguments, not %zd", count);
  int collects = PyGC_Disable();
  PyObject *result = PyObject_CallOneArg(arguments[0], arguments[1]);
  if (collects) PyGC_Enable();
  return result;
}

/* How many elements a value has that was made of JSON: those of its lists and dicts, at least one for each. -1: nested too
 * deeply; -2: a number that is not finite, or has more than 64 bits. */
static Py_ssize_t weight(PyObject *value, Py_ssize_t levels) {
  PyTypeObject *kind = Py_TYPE(value);
  Py_ssize_t all = 0, inner, at = 0;
  PyObject *key, *item;
  if (kind == &PyLong_Type) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? -2 : 0;
  }
  if (kind == &PyFloat_Type) return isfinite(PyFloat_AS_DOUBLE(value)) ? 0 : -2;
  if (kind != &PyList_Type && kind != &PyDict_Type) return 0;
  if (levels <= 0) return -1;
  if (kind == &PyList_Type) {
    all = PyList_GET_SIZE(value);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++) {
      if ((inner = weight(PyList_GET_ITEM(value, i), levels - 1)) < 0) return inner;
      all += inner;
    }
  } else {
    all = PyDict_GET_SIZE(value);
    while (PyDict_Next(value, &at, &key, &item)) {
      if ((inner = weight(item, levels - 1)) < 0) return inner;
      all += inner;
    }
  }
  return all ? all : 1;
}

/* weight(value, levels): the number of its elements; see above. */
static PyObject *py_weight(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
  (void)module;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "weight takes 2 arguments, not %zd", count);
  Py_ssize_t levels = PyLong_AsSsize_t(arguments[1]);
  if (PyErr_Occurred()) return NULL;
  return PyLong_FromSsize_t(weight(arguments[0], levels < DEEPEST ? levels : DEEPEST));
}

/* bound(order, kinds, required, defaults, arguments): a call's arguments by name, where they are of exactly these types and
 * texts have no characters beyond ASCII; None where binding.py must look at them. */
static PyObject *py_bound(PyObject *module, PyObject *const *given, Py_ssize_t count) {
  (void)module;
  PyObject *name, *value, *named;
  Py_ssize_t at = 0;
  if (count != 5 || !PyTuple_CheckExact(given[0]) || !PyDict_CheckExact(given[1]) || !PyTuple_CheckExact(given[2]) ||
      !PyDict_CheckExact(given[3]) || !PyList_CheckExact(given[4]))
    return PyErr_Format(PyExc_TypeError, "bound takes a tuple, a dict, a tuple, a dict and a list");
  PyObject *order = given[0], *kinds = given[1], *required = given[2], *defaults = given[3], *arguments = given[4];
  Py_ssize_t size = PyList_GET_SIZE(arguments);
  if (size == 1 && PyDict_CheckExact(PyList_GET_ITEM(arguments, 0))) {
    named = PyDict_Copy(PyList_GET_ITEM(arguments, 0));
  } else if (size <= PyTuple_GET_SIZE(order)) {
    named = PyDict_New();
    for (Py_ssize_t i = 0; named && i < size; i++)
      if (PyDict_SetItem(named, PyTuple_GET_ITEM(order, i), PyList_GET_ITEM(arguments, i))) Py_CLEAR(named);
  } else {
    Py_RETURN_NONE;
  }
  if (!named) return NULL;
  while (PyDict_Next(named, &at, &name, &value)) {
    PyObject *kind = PyUnicode_CheckExact(name) ? PyDict_GetItemWithError(kinds, name) : NULL;
    if (kind != (PyObject *)Py_TYPE(value) || (PyUnicode_CheckExact(value) && !PyUnicode_IS_ASCII(value))) goto unusual;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(required); i++)
    if (PyDict_Contains(named, PyTuple_GET_ITEM(required, i)) != 1) goto unusual;
  if (PyDict_GET_SIZE(defaults) && PyDict_Merge(named, defaults, 0)) goto unusual; /* those that were given stay */
  return named;
unusual:
  Py_DECREF(named);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

/* What `scan`, which is Python's own reader of JSON, makes of a text: (value, where it ends). */
static PyObject *scan(PyObject *scan, PyObject *text) {
  PyObject *start = PyLong_FromLong(0);
  PyObject *scanned = start ? PyObject_CallFunctionObjArgs(scan, text, start, NULL) : NULL;
  Py_XDECREF(start);
  return scanned;
}

/* The value, borrowed, where that is all of the text; else NULL. */
static PyObject *scanned_value(PyObject *scanned, PyObject *text) {
  if (!PyTuple_CheckExact(scanned) || PyTuple_GET_SIZE(scanned) != 2) return NULL;
  return PyLong_AsSsize_t(PyTuple_GET_ITEM(scanned, 1)) == PyUnicode_GET_LENGTH(text) ? PyTuple_GET_ITEM(scanned, 0) : NULL;
}

static int is_count(PyObject *value, long long least, long long *count) {
  int overflow = 0;
  if (!PyLong_CheckExact(value)) return 0;
  *count = PyLong_AsLongLongAndOverflow(value, &overflow);
  return !overflow && *count >= least;
}

/* Python's own text of UTF-8 from `start` on, in which nothing is escaped; NULL, mostly without an exception, where it is
 * something else. */
static PyObject *plain_text(PyObject *payload, Py_ssize_t start) {
  PyObject *text = PyUnicode_DecodeUTF8(PyBytes_AS_STRING(payload) + start, PyBytes_GET_SIZE(payload) - start, NULL);
  if (!text) {
    if (PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    return NULL;
  }
  if (PyUnicode_FindChar(text, '\\', 0, PyUnicode_GET_LENGTH(text), 1) != -1) Py_CLEAR(text);
  return text;
}

/* `made`, or None where the reader has found something wrong and whoever is slower must say what; NULL for all else. */
static PyObject *or_none(PyObject *made) {
  if (made) return made;
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_RecursionError) &&
        !PyErr_ExceptionMatches(PyExc_StopIteration))
      return NULL;
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

/* lone_end(scan, spent, payload, start, levels, most): (values, operations or None, memory, cpu, cut), where the payload is a
 * list of values from `start` on, and `spent` is (operations, memory, cpu, cut) as they are allowed to be; None where
 * encoding.py and messages.py must look. It is read as the call below. */
static PyObject *py_lone_end(PyObject *module, PyObject *const *given, Py_ssize_t count) {
  (void)module;
  if (count != 6 || !PyTuple_CheckExact(given[1]) || PyTuple_GET_SIZE(given[1]) != 4 || !PyBytes_CheckExact(given[2]))
    return PyErr_Format(PyExc_TypeError, "lone_end takes a reader, a tuple of four, bytes and three numbers");
  PyObject *operations = PyTuple_GET_ITEM(given[1], 0), *memory = PyTuple_GET_ITEM(given[1], 1);
  PyObject *cpu = PyTuple_GET_ITEM(given[1], 2), *cut = PyTuple_GET_ITEM(given[1], 3), *result = NULL;
  Py_ssize_t start = PyLong_AsSsize_t(given[3]), levels = PyLong_AsSsize_t(given[4]);
  double most = PyFloat_AsDouble(given[5]);
  long long counted, other;
  if (PyErr_Occurred()) return NULL;
  if (start < 0 || start > PyBytes_GET_SIZE(given[2])) Py_RETURN_NONE;
  if (!is_count(operations, -1, &counted) || !is_count(memory, 0, &other) || !is_count(cut, 0, &other)) Py_RETURN_NONE;
  if (!PyFloat_CheckExact(cpu) || !(PyFloat_AS_DOUBLE(cpu) >= 0 && PyFloat_AS_DOUBLE(cpu) < most)) Py_RETURN_NONE;
  PyObject *text = plain_text(given[2], start), *scanned = text ? scan(given[0], text) : NULL;
  PyObject *values = scanned ? scanned_value(scanned, text) : NULL;
  if (values && PyList_CheckExact(values) && weight(values, levels < DEEPEST ? levels : DEEPEST) >= 0)
    result = PyTuple_Pack(5, values, counted < 0 ? Py_None : operations, memory, cpu, cut);
  Py_XDECREF(scanned);
  Py_XDECREF(text);
  return or_none(result);
}

/* lone_call(scan, payload, most_bytes, levels, after, most, longest): (elements, number, target, arguments), where the payload
 * is a list of one call [number, target, arguments] of a tool, as it is allowed to be; None where encoding.py and messages.py
 * must look at it. It is read by Python's own decoder and by `scan`: what is looked at here are the values that they make. */
static PyObject *py_lone_call(PyObject *module, PyObject *const *given, Py_ssize_t count) {
  (void)module;
  if (count != 7 || !PyBytes_CheckExact(given[1])) return PyErr_Format(PyExc_TypeError, "lone_call takes 7 arguments");
  Py_ssize_t most_bytes = PyLong_AsSsize_t(given[2]), levels = PyLong_AsSsize_t(given[3]), elements;
  long long after = PyLong_AsLongLong(given[4]), most = PyLong_AsLongLong(given[5]), longest = PyLong_AsLongLong(given[6]), id;
  if (PyErr_Occurred()) return NULL;
  if (PyBytes_GET_SIZE(given[1]) > most_bytes) Py_RETURN_NONE;
  PyObject *text = plain_text(given[1], 0), *scanned = text ? scan(given[0], text) : NULL, *result = NULL;
  PyObject *data = scanned ? scanned_value(scanned, text) : NULL;
  if (!data || !PyList_CheckExact(data) || PyList_GET_SIZE(data) != 1) goto end;
  PyObject *call = PyList_GET_ITEM(data, 0);
  if (!PyList_CheckExact(call) || PyList_GET_SIZE(call) != 3) goto end;
  PyObject *number = PyList_GET_ITEM(call, 0), *target = PyList_GET_ITEM(call, 1), *arguments = PyList_GET_ITEM(call, 2);
  if (!is_count(number, after + 1, &id) || !PyUnicode_CheckExact(target) || !PyList_CheckExact(arguments)) goto end;
  if (id >= most || PyUnicode_GET_LENGTH(target) > longest) goto end;
  static const char space[] = "tools.";
  for (Py_ssize_t i = 0; space[i]; i++)
    if (i >= PyUnicode_GET_LENGTH(target) || PyUnicode_READ_CHAR(target, i) != (Py_UCS4)space[i]) goto end;
  if ((elements = weight(data, levels < DEEPEST ? levels : DEEPEST)) < 0) goto end;
  PyObject *weighed = PyLong_FromSsize_t(elements);
  if (weighed) result = PyTuple_Pack(4, weighed, number, target, arguments);
  Py_XDECREF(weighed);
end:
  Py_XDECREF(scanned);
  Py_XDECREF(text);
  return or_none(result);
}

/* ---- Frozen dataclasses, made quickly: the native part of frozen.py --------------------------------------------------- */

enum { MOST_FIELDS = 64 };

/* Makes objects of one class with slots. Values by position go straight into the slots, as do those that are the same for
 * every object, which follow; all else is `otherwise`'s. */
typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  PyTypeObject *made;
  PyObject *otherwise, *same;
  Py_ssize_t count, offsets[MOST_FIELDS];
} Maker;

static PyObject *make(PyObject *self, PyObject *const *values, size_t given, PyObject *names) {
  Maker *maker = (Maker *)self;
  if (names || PyVectorcall_NARGS(given) != maker->count) return PyObject_Vectorcall(maker->otherwise, values, given, names);
  PyObject *made = maker->made->tp_alloc(maker->made, 0);
  if (!made) return NULL;
  for (Py_ssize_t i = 0; i < maker->count; i++)
    *(PyObject **)((char *)made + maker->offsets[i]) = Py_NewRef(values[i]);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(maker->same); i++)
    *(PyObject **)((char *)made + maker->offsets[maker->count + i]) = Py_NewRef(PyTuple_GET_ITEM(maker->same, i));
  return made;
}

static int maker_traverse(Maker *self, visitproc visit, void *arg) {
  Py_VISIT(self->made);
  Py_VISIT(self->otherwise);
  Py_VISIT(self->same);
  return 0;
}

static int maker_clear(Maker *self) {
  Py_CLEAR(self->made);
  Py_CLEAR(self->otherwise);
  Py_CLEAR(self->same);
  return 0;
}

static void maker_dealloc(Maker *self) {
  PyObject_GC_UnTrack(self);
  maker_clear(self);
  Py_TYPE(self)->tp_free(self);
}

static PyTypeObject MAKER = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "moonbox._values.Maker",
    .tp_basicsize = sizeof(Maker),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Maker, call),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = (traverseproc)maker_traverse,
    .tp_clear = (inquiry)maker_clear,
    .tp_dealloc = (destructor)maker_dealloc,
};

/* maker(class, names, otherwise, same=()): a constructor of that class, whose fields, in this order, are slots of it or of its
 * bases; the last ones have the values `same` in every object. */
static PyObject *py_maker(PyObject *module, PyObject *arguments) {
  PyTypeObject *made;
  PyObject *names, *otherwise, *same = NULL;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "O!O!O|O!", &PyType_Type, &made, &PyTuple_Type, &names, &otherwise, &PyTuple_Type, &same))
    return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(names), given = count - (same ? PyTuple_GET_SIZE(same) : 0);
  if (count > MOST_FIELDS || given < 0 || made->tp_itemsize || made->tp_alloc != PyType_GenericAlloc)
    return PyErr_Format(PyExc_TypeError, "not a class for a maker");
  Maker *maker = (Maker *)PyType_GenericAlloc(&MAKER, 0);
  if (!maker) return NULL;
  maker->call = make;
  maker->made = (PyTypeObject *)Py_NewRef(made);
  maker->otherwise = Py_NewRef(otherwise);
  maker->count = given;
  maker->same = same ? Py_NewRef(same) : PyTuple_New(0);
  if (!maker->same) {
    Py_DECREF(maker);
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *slot = PyObject_GetAttr((PyObject *)made, PyTuple_GET_ITEM(names, i));
    PyMemberDef *member = slot && Py_TYPE(slot) == &PyMemberDescr_Type ? ((PyMemberDescrObject *)slot)->d_member : NULL;
    int is_slot = member && member->type == T_OBJECT_EX && PyType_IsSubtype(made, PyDescr_TYPE(slot));
    maker->offsets[i] = is_slot ? member->offset : 0;
    Py_XDECREF(slot);
    if (!is_slot) {
      Py_DECREF(maker);
      PyErr_Clear();
      return PyErr_Format(PyExc_TypeError, "a field that is no slot of the class");
    }
  }
  return (PyObject *)maker;
}

/* ---- Threads that hand over to each other: the native part of threads.py ---------------------------------------------- */

/* One thread gives it, and one takes it. */
typedef struct {
  PyObject_HEAD
  PyThread_type_lock lock; /* held while it is not given */
  int given;               /* changed with the interpreter's lock held */
} Signal;

/* Give `other`, unless it is NULL, and wait for this one; whether it came in time. The interpreter's lock is let go before
 * the other thread wakes up: else that would have to wait for it, and both would change places once more. */
static PyObject *swap(Signal *self, Signal *other, PyObject *seconds) {
  double longest = PyFloat_AsDouble(seconds);
  if (PyErr_Occurred()) return NULL;
  PY_TIMEOUT_T wait = longest < 0 ? -1 : longest > 1e6 ? (PY_TIMEOUT_T)1e12 : (PY_TIMEOUT_T)(longest * 1e6);
  int give = other && !other->given;
  if (give) other->given = 1;
  PyLockStatus status;
  Py_BEGIN_ALLOW_THREADS;
  if (give) PyThread_release_lock(other->lock);
  status = PyThread_acquire_lock_timed(self->lock, wait, 1);
  Py_END_ALLOW_THREADS;
  if (status == PY_LOCK_ACQUIRED) self->given = 0;
  /* A signal of the system that came meanwhile, as Ctrl-C does; whoever waits on waits again. */
  else if (status == PY_LOCK_INTR && PyErr_CheckSignals() < 0)
    return NULL;
  return PyBool_FromLong(status == PY_LOCK_ACQUIRED);
}

static PyObject *signal_give(Signal *self, PyObject *_) {
  (void)_;
  if (!self->given) {
    self->given = 1;
    PyThread_release_lock(self->lock);
  }
  Py_RETURN_NONE;
}

static PyObject *signal_take(Signal *self, PyObject *seconds) { return swap(self, NULL, seconds); }

static PyTypeObject SIGNAL;

/* give_and_take(other, seconds) */
static PyObject *signal_give_and_take(Signal *self, PyObject *const *given, Py_ssize_t count) {
  if (count != 2 || Py_TYPE(given[0]) != &SIGNAL)
    return PyErr_Format(PyExc_TypeError, "give_and_take takes another Signal and seconds");
  return swap((Signal *)given[0], self, given[1]);
}

static PyObject *signal_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  if (PyTuple_GET_SIZE(arguments) || (names && PyDict_GET_SIZE(names)))
    return PyErr_Format(PyExc_TypeError, "Signal takes no arguments");
  Signal *signal = (Signal *)type->tp_alloc(type, 0);
  if (!signal) return NULL;
  signal->lock = PyThread_allocate_lock();
  if (!signal->lock) {
    Py_DECREF(signal);
    return PyErr_NoMemory();
  }
  PyThread_acquire_lock(signal->lock, 1);
  return (PyObject *)signal;
}

static void signal_dealloc(Signal *self) {
  if (self->lock) {
    if (!self->given) PyThread_release_lock(self->lock);
    PyThread_free_lock(self->lock);
  }
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef SIGNAL_METHODS[] = {
    {"give", (PyCFunction)signal_give, METH_NOARGS, NULL},
    {"take", (PyCFunction)signal_take, METH_O, NULL},
    {"give_and_take", (PyCFunction)(void (*)(void))signal_give_and_take, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};
static PyTypeObject SIGNAL = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "moonbox._values.Signal",
    .tp_basicsize = sizeof(Signal),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = signal_new,
    .tp_dealloc = (destructor)signal_dealloc,
    .tp_methods = SIGNAL_METHODS,
};

static PyMethodDef METHODS[] = {{"maker", py_maker, METH_VARARGS, NULL},
                                {"lowered", (PyCFunction)(void (*)(void))py_lowered, METH_FASTCALL, NULL},
                                {"without_collecting", (PyCFunction)(void (*)(void))py_without_collecting, METH_FASTCALL, NULL},
                                {"weight", (PyCFunction)(void (*)(void))py_weight, METH_FASTCALL, NULL},
                                {"bound", (PyCFunction)(void (*)(void))py_bound, METH_FASTCALL, NULL},
                                {"lone_call", (PyCFunction)(void (*)(void))py_lone_call, METH_FASTCALL, NULL},
                                {"lone_end", (PyCFunction)(void (*)(void))py_lone_end, METH_FASTCALL, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_values", NULL, 0, METHODS, NULL, NULL, NULL, NULL};

/* Raised with every change of what Python calls here; native.py has the same. */
enum { REVISION = 2 };

PyMODINIT_FUNC PyInit__values(void) {
  PyObject *module = PyType_Ready(&MAKER) < 0 || PyType_Ready(&SIGNAL) < 0 ? NULL : PyModule_Create(&MODULE);
  if (module && PyModule_AddObjectRef(module, "Signal", (PyObject *)&SIGNAL) < 0) Py_CLEAR(module);
  if (module && PyModule_AddIntConstant(module, "REVISION", REVISION) < 0) Py_CLEAR(module);
  return module;
}

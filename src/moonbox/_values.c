/* Values on their way to a script, copied and measured in one pass: the native part of values.py. And records, made quickly.
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
  /* What is made here is all in use: the collector would only look through it again and again while it grows. */
  int collects = PyGC_Disable();
  PyObject *copy = copied(value, &bounds, max_depth < DEEPEST ? max_depth : DEEPEST);
  if (collects) PyGC_Enable();
  if (copy || PyErr_Occurred()) return copy;
  return Py_NewRef(Py_NotImplemented);
}

static int deeper(PyObject *value, Py_ssize_t levels) {
  if (Py_TYPE(value) == &PyList_Type) {
    if (levels <= 0) return 1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++)
      if (deeper(PyList_GET_ITEM(value, i), levels - 1)) return 1;
  } else if (Py_TYPE(value) == &PyDict_Type) {
    PyObject *key, *item;
    Py_ssize_t at = 0;
    if (levels <= 0) return 1;
    while (PyDict_Next(value, &at, &key, &item))
      if (deeper(item, levels - 1)) return 1;
  }
  return 0;
}

/* is_deeper(value, levels): whether lists and dicts are nested in it more than so many levels deep. */
static PyObject *py_is_deeper(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
  (void)module;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "is_deeper takes 2 arguments, not %zd", count);
  Py_ssize_t levels = PyLong_AsSsize_t(arguments[1]);
  if (PyErr_Occurred()) return NULL;
  return PyBool_FromLong(deeper(arguments[0], levels));
}

/* ---- Frozen dataclasses, made quickly: the native part of frozen.py --------------------------------------------------- */

enum { MOST_FIELDS = 32 };

/* Makes objects of one class with slots. Values by position go straight into the slots, all else is `otherwise`'s. */
typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  PyTypeObject *made;
  PyObject *otherwise;
  Py_ssize_t count, offsets[MOST_FIELDS];
} Maker;

static PyObject *make(PyObject *self, PyObject *const *values, size_t given, PyObject *names) {
  Maker *maker = (Maker *)self;
  if (names || PyVectorcall_NARGS(given) != maker->count) return PyObject_Vectorcall(maker->otherwise, values, given, names);
  PyObject *made = maker->made->tp_alloc(maker->made, 0);
  if (!made) return NULL;
  for (Py_ssize_t i = 0; i < maker->count; i++)
    *(PyObject **)((char *)made + maker->offsets[i]) = Py_NewRef(values[i]);
  return made;
}

static int maker_traverse(Maker *self, visitproc visit, void *arg) {
  Py_VISIT(self->made);
  Py_VISIT(self->otherwise);
  return 0;
}

static int maker_clear(Maker *self) {
  Py_CLEAR(self->made);
  Py_CLEAR(self->otherwise);
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

/* maker(class, names, otherwise): a constructor of that class, whose fields, in this order, are slots of its own. */
static PyObject *py_maker(PyObject *module, PyObject *arguments) {
  PyTypeObject *made;
  PyObject *names, *otherwise;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "O!O!O", &PyType_Type, &made, &PyTuple_Type, &names, &otherwise)) return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  if (count > MOST_FIELDS || made->tp_itemsize || made->tp_alloc != PyType_GenericAlloc)
    return PyErr_Format(PyExc_TypeError, "not a class for a maker");
  Maker *maker = (Maker *)PyType_GenericAlloc(&MAKER, 0);
  if (!maker) return NULL;
  maker->call = make;
  maker->made = (PyTypeObject *)Py_NewRef(made);
  maker->otherwise = Py_NewRef(otherwise);
  maker->count = count;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *slot = PyDict_GetItemWithError(made->tp_dict, PyTuple_GET_ITEM(names, i));
    PyMemberDef *member = slot && Py_TYPE(slot) == &PyMemberDescr_Type ? ((PyMemberDescrObject *)slot)->d_member : NULL;
    if (!member || member->type != T_OBJECT_EX || PyDescr_TYPE(slot) != made) {
      Py_DECREF(maker);
      return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a field that is no slot of its class");
    }
    maker->offsets[i] = member->offset;
  }
  return (PyObject *)maker;
}

static PyMethodDef METHODS[] = {{"maker", py_maker, METH_VARARGS, NULL},
                                {"lowered", (PyCFunction)(void (*)(void))py_lowered, METH_FASTCALL, NULL},
                                {"is_deeper", (PyCFunction)(void (*)(void))py_is_deeper, METH_FASTCALL, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_values", NULL, 0, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__values(void) { return PyType_Ready(&MAKER) < 0 ? NULL : PyModule_Create(&MODULE); }

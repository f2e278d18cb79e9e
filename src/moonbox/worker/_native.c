/* The native part of a worker: its loop, its codec and its interrupt, in C on Lua's own C API.
 *
 * Optional: everything works without it, in Python (child.py, languages/lua/vm.py). Where it was built, a worker runs
 * scripts and makes calls without entering Python at all. It lives inside the jail and reads two things: frames from the
 * host, which the worker trusts, and values of the script, which are read through Lua's API only. No code in this file
 * reads what a worker sends; in the host that is done by libraries that are fuzzed by others.
 *
 * Lua raises errors by long jumps. So whatever can raise holds no memory but that of static buffers, and no Python object.
 * Lua's functions are found in lupa's extension module, which exports them.
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "_spin.h"

/* ---- Lua's C API, as far as it is used -------------------------------------------------------------------------- */

typedef struct lua_State lua_State;
typedef long long lua_Integer;
typedef double lua_Number;
typedef int (*lua_CFunction)(lua_State *);
typedef void (*lua_Hook)(lua_State *, void *);
typedef void *(*lua_Alloc)(void *, void *, size_t, size_t);
typedef intptr_t lua_KContext;

enum { T_NIL = 0, T_BOOLEAN = 1, T_LIGHT = 2, T_NUMBER = 3, T_STRING = 4, T_TABLE = 5 };
enum { MULTIPLE = -1, MASK_COUNT = 8, GC_STOP = 0, GC_RESTART = 1, GC_COLLECT = 2, GC_COUNT = 3, GC_COUNTB = 4, GC_STEP = 5 };
#define REGISTRY (-1000000 - 1000)
#define upvalue(i) (REGISTRY - (i))

#define API(X)                                                                                                         \
  X(int, lua_pcallk, (lua_State *, int, int, int, lua_KContext, void *))                                               \
  X(void, lua_settop, (lua_State *, int))                                                                              \
  X(int, lua_gettop, (lua_State *))                                                                                    \
  X(int, lua_type, (lua_State *, int))                                                                                 \
  X(int, lua_isinteger, (lua_State *, int))                                                                            \
  X(lua_Integer, lua_tointegerx, (lua_State *, int, int *))                                                            \
  X(lua_Number, lua_tonumberx, (lua_State *, int, int *))                                                              \
  X(const char *, lua_tolstring, (lua_State *, int, size_t *))                                                         \
  X(int, lua_toboolean, (lua_State *, int))                                                                            \
  X(const void *, lua_topointer, (lua_State *, int))                                                                   \
  X(unsigned long long, lua_rawlen, (lua_State *, int))                                                                \
  X(void, lua_pushnil, (lua_State *))                                                                                  \
  X(void, lua_pushboolean, (lua_State *, int))                                                                         \
  X(void, lua_pushinteger, (lua_State *, lua_Integer))                                                                 \
  X(void, lua_pushnumber, (lua_State *, lua_Number))                                                                   \
  X(const char *, lua_pushlstring, (lua_State *, const char *, size_t))                                                \
  X(void, lua_rotate, (lua_State *, int, int))                                                                         \
  X(void, lua_pushvalue, (lua_State *, int))                                                                           \
  X(void, lua_pushcclosure, (lua_State *, lua_CFunction, int))                                                         \
  X(void, lua_createtable, (lua_State *, int, int))                                                                    \
  X(void, lua_rawset, (lua_State *, int))                                                                              \
  X(int, lua_rawget, (lua_State *, int))                                                                               \
  X(void, lua_rawseti, (lua_State *, int, lua_Integer))                                                                \
  X(int, lua_rawgeti, (lua_State *, int, lua_Integer))                                                                 \
  X(void, lua_setfield, (lua_State *, int, const char *))                                                              \
  X(int, lua_getfield, (lua_State *, int, const char *))                                                               \
  X(int, lua_setmetatable, (lua_State *, int))                                                                         \
  X(int, lua_getmetatable, (lua_State *, int))                                                                         \
  X(void, lua_callk, (lua_State *, int, int, lua_KContext, void *))                                                    \
  X(int, lua_next, (lua_State *, int))                                                                                 \
  X(int, lua_checkstack, (lua_State *, int))                                                                           \
  X(int, lua_error, (lua_State *))                                                                                     \
  X(int, lua_gc, (lua_State *, int, ...))                                                                              \
  X(void, lua_sethook, (lua_State *, lua_Hook, int, int))                                                              \
  X(lua_Hook, lua_gethook, (lua_State *))                                                                              \
  X(lua_State *, lua_tothread, (lua_State *, int))                                                                     \
  X(void, lua_setallocf, (lua_State *, lua_Alloc, void *))                                                             \
  X(int, luaL_ref, (lua_State *, int))                                                                                 \
  X(void, luaL_unref, (lua_State *, int, int))

#define DECLARE(result, name, parameters) static result(*p_##name) parameters;
API(DECLARE)
#undef DECLARE

#define pop(L, n) p_lua_settop(L, -(n) - 1)

static const char *resolve(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return "lupa's extension is not loaded";
#define RESOLVE(result, name, parameters)                                                                              \
  if (!(*(void **)&p_##name = dlsym(handle, #name))) return #name;
  API(RESOLVE)
#undef RESOLVE
  return NULL;
}

/* ---- What a worker is made of ------------------------------------------------------------------------------------ */

enum { CONFIGURE = 1, RUN = 2, ANSWERS = 3, HALT = 4, INSPECT = 7, INPUTS = 8 };
enum { READY = 16, OUTPUT = 17, CALLS = 18, CANCEL = 19, DONE = 20, VALUE = 22, KEPT = 23, VALUE_KEPT = 24, INSPECTED = 26 };
enum { REASON_TIME = 1, REASON_CANCELLED = 2, REASON_CALLS = 3, REASON_MEMORY = 4 };
enum { HEADER = 5, SPENT_SIZE = 32, RUN_HEAD = 12, LOOK = 12, MOST_RUNNING = 256, MOST_DEPTH = 1000 };
enum { NONE = 0xc0, MOST_ELEMENTS = 1 << 26, MOST_ANSWERS = 100000, LARGE = 1 << 16, KNOWN_NAMES = 64 };
enum { PAGE = 4096, NEXT_ROOM = 32 << 10, LARGEST_HOLE = 64 << 10, LARGEST_CACHED = 1032, SMALLEST_HOLE = 24 };
enum { MOST_FILLED = 16 << 20 };
enum { FLUSH_BYTES = 8192, KEPT_FROM = 500, LEAST_BUFFER = 1 << 16, KEPT_BUFFER = 1 << 20 };
static const size_t SLACK = 64 * 1024;
static const size_t LITTLE_GAIN = 64; /* of the limit: what collecting must bring */
static const int MOST_TIGHT = 3;
static const long FLUSH_NANOSECONDS = 5000000;

typedef struct {
  char *data;
  size_t size, room;
} Buffer;

static struct {
  lua_State *L;
  int socket;
  /* references in Lua's registry */
  int run, inputs, kept, inspect, limits, array_ref, null_fields, null_array, fields, positions, count;
  const void *array;                                         /* the metatable that marks arrays */
  const void *null;                                          /* the light userdata that stands for json.null */
  /* memory, as our allocator counts it */
  size_t used, peak, limit, base;
  size_t rehearsed; /* what the rehearsals of this worker have left, and is not a script's */
  size_t taken, taken_before; /* bytes that were allocated, in all and when there was no room for more */
  int tight;                  /* how often in a row collecting has brought little */
  /* the limits of a run */
  size_t max_memory, max_output, max_string, max_array, max_nodes, max_depth;
  /* the run under way */
  uint32_t number;
  int has_run, builtins_intact;
  int gc_stopped, uncollected; /* the collector is stopped; it was stopped and has work left */
  size_t live;                   /* bytes in use after it had looked at everything, the last time */
  int in_run;                    /* a script that `run` has started */
  size_t held; /* bytes of what it returned, as JSON text in `out`, after room for the head of its frame; 0: none */
  size_t printed;
  atomic_int reason;
  /* `guarded` stands while what follows is changed: a stop must find its own run or none, and no coroutine that has ended */
  volatile sig_atomic_t guarded, stop_waits;
  volatile uint64_t stop; /* the latest: the number of its run, and above that the reason */
  uint32_t running_number; /* 0: none */
  uint32_t early_number;   /* of the latest stop, which may come before its run */
  int early_reason;
  /* coroutines that run now, by level; the main thread's level is 0 */
  lua_State *running[MOST_RUNNING];
  int levels;
  lua_Hook hook;
  /* output that has not been sent yet; `sending` stands while that is changed, or a frame is being sent */
  volatile sig_atomic_t sending;
  Buffer pending;
  struct timespec flushed;
  /* one frame at a time in each direction */
  Buffer in, out;
  size_t in_start;
  /* keys of tables that are being put in order, those of a table after those of the table that contains it; and room to
   * rearrange text */
  Buffer keys, moved;
  /* the processor time of this thread when it last looked, and what of that was spent looking for a frame */
  double cpu;
  int64_t spun;
  Spin spin;
  int may_spin; /* the machine has more than one processor for us */
} W = {.socket = -1};

static int room_for(Buffer *b, size_t more) {
  if (b->size + more <= b->room) return 1;
  size_t room = b->room ? b->room : LEAST_BUFFER, wanted = b->size + more;
  while (room < wanted && room < KEPT_BUFFER) room *= 2;
  if (room < wanted) room = wanted + wanted / 4; /* the address space is limited */
  char *data = realloc(b->data, room);
  if (!data) return 0;
  b->data = data;
  b->room = room;
  return 1;
}

/* Empty it, and give most of a large one back. Its first block stays: what receives can always hold a header. */
static void shrink(Buffer *b) {
  b->size = 0;
  if (b->room <= KEPT_BUFFER) return;
  char *data = realloc(b->data, LEAST_BUFFER);
  if (!data) return;
  b->data = data;
  b->room = LEAST_BUFFER;
}

static void trip(int reason);

/* Whether there is room for so many bytes more. Where there is none, Lua collects and asks again, or goes on without, as it does
 * with its table of texts. So a script whose memory is full may collect everything for each small block: where that has brought
 * little several times, one after another, it is stopped. */
static int has_memory(size_t more) {
  if (W.used + more <= W.limit) return 1;
  W.tight = W.taken - W.taken_before < W.limit / LITTLE_GAIN ? W.tight + 1 : 0;
  W.taken_before = W.taken;
  if (W.tight > MOST_TIGHT && W.running_number && !W.guarded && !atomic_load(&W.reason)) trip(REASON_MEMORY);
  return 0;
}

/* Lua's memory, by this thread alone. lupa's allocator uses realloc and free too, so that blocks can change hands. */
static void *allocate(void *_, void *block, size_t old, size_t new) {
  (void)_;
  if (!block) old = 0;
  if (new == 0) {
    free(block);
    W.used -= old;
    return NULL;
  }
  if (new > old && W.limit && !has_memory(new - old)) return NULL;
  void *moved = realloc(block, new);
  if (moved) {
    W.used += new - old;
    if (new > old) W.taken += new - old;
    if (W.used > W.peak) W.peak = W.used;
  }
  return moved;
}

static void limit_memory(size_t extra) {
  size_t least = W.used + extra, allowed = W.max_memory + W.base;
  W.limit = (allowed > least ? allowed : least) + SLACK;
  W.tight = 0;
}

/* ---- Frames -------------------------------------------------------------------------------------------------------- */

static int send_all(const char *data, size_t size) {
  while (size) {
    ssize_t sent = send(W.socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return 0;
    data += sent;
    size -= (size_t)sent;
  }
  return 1;
}

static void put_header(char *at, int kind, size_t length) {
  uint32_t n = (uint32_t)length;
  at[0] = (char)kind;
  memcpy(at + 1, &n, 4);
}

static int send_frame(int kind, const char *payload, size_t size) {
  char small[HEADER + 512];
  put_header(small, kind, size);
  if (size <= sizeof small - HEADER) {
    memcpy(small + HEADER, payload, size);
    return send_all(small, HEADER + size);
  }
  return send_all(small, HEADER) && send_all(payload, size);
}

/* The rest of a frame that there is no memory for: what follows it must not be taken for a part of it. */
static int skip(size_t left) {
  char nowhere[1024];
  while (left) {
    ssize_t got = recv(W.socket, nowhere, left < sizeof nowhere ? left : sizeof nowhere, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    left -= (size_t)got;
  }
  return 1;
}

/* The next frame: its payload stays in place until the next one is asked for. 0 when the host has hung up, -1 when the
 * frame was too large for the memory that is left. */
static int receive(int *kind, char **payload, size_t *length) {
  Buffer *in = &W.in;
  if (W.in_start) {
    in->size -= W.in_start;
    memmove(in->data, in->data + W.in_start, in->size);
    W.in_start = 0;
    if (!in->size) shrink(in);
  }
  for (;;) {
    size_t wanted = HEADER;
    if (in->size >= HEADER) {
      uint32_t n;
      memcpy(&n, in->data + 1, 4);
      wanted += n;
      if (in->size >= wanted) {
        *kind = (unsigned char)in->data[0];
        *payload = in->data + HEADER;
        *length = n;
        W.in_start = wanted;
        return 1;
      }
    }
    size_t more = wanted - in->size;
    if (!room_for(in, more > LEAST_BUFFER / 2 ? more : LEAST_BUFFER / 2) && !room_for(in, more)) {
      /* Without a header it is unknown how much to skip. It takes a worker without memory for its very first block. */
      if (in->size < HEADER) return 0;
      in->size = 0;
      return skip(more) ? -1 : 0;
    }
    ssize_t got = -1;
    errno = EAGAIN;
    if (W.may_spin && !in->size) got = spin_receive(&W.spin, W.socket, in->data, in->room);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      got = recv(W.socket, in->data + in->size, in->room - in->size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    in->size += (size_t)got;
  }
}

/* ---- Printed output: sent when there is enough of it, or it has waited long enough ---------------------------------- */

static void begin_sending(void) {
  W.sending = 1;
  atomic_signal_fence(memory_order_seq_cst);
}

static void end_sending(void) {
  atomic_signal_fence(memory_order_seq_cst);
  W.sending = 0;
}

static int flush_locked(void) {
  if (!W.pending.size) return 1;
  int ok = send_frame(OUTPUT, W.pending.data, W.pending.size);
  W.pending.size = 0;
  clock_gettime(CLOCK_MONOTONIC, &W.flushed);
  return ok;
}

static int flush_output(void) {
  if (!W.pending.size) return 1; /* only this thread adds to it */
  begin_sending();
  int ok = flush_locked();
  end_sending();
  return ok;
}

/* ---- Stopping a script ---------------------------------------------------------------------------------------------- */

/* A stop comes as a queued signal, with the number of the run and the reason as its value, and interrupts the one thread that
 * there is. So the handler is careful with what that thread may be in the middle of changing: where `guarded` stands, the stop
 * waits until it is taken away again, a few instructions later. A worker needs no socket for this, and its zygote none for each
 * worker. A signal of real time: a second stop is not lost while the first one waits. */
#define STOP_SIGNAL (SIGRTMIN + 1)
_Static_assert(sizeof(void *) == 8, "a stop is the value of one signal");

/* Stop what runs. No hook stands while a script runs, so that it runs at full speed; Lua allows this call from a handler of
 * signals. No coroutine that is listed can have ended. */
static void trip(int reason) {
  atomic_store(&W.reason, reason);
  for (int level = 0; level < W.levels; level++) p_lua_sethook(W.running[level], W.hook, MASK_COUNT, 1);
}

/* The latest stop; those before it are for runs that have ended, or for the same one. With `guarded` standing. */
static void take_stop(void) {
  uint64_t stop = W.stop;
  W.early_number = (uint32_t)stop;
  W.early_reason = (int)(stop >> 32);
  if (!W.early_number || W.running_number != W.early_number) return;
  trip(W.early_reason);
  /* What was printed must not be lost: a script that is stuck where nothing stops it will soon be killed. */
  if (!W.sending) begin_sending(), flush_locked(), end_sending();
}

static void guard(void) {
  W.guarded = 1;
  atomic_signal_fence(memory_order_seq_cst);
}

static void unguard(void) {
  do { /* one that comes between the last look and the end of the guard is taken by the handler, or by another round */
    atomic_signal_fence(memory_order_seq_cst);
    W.guarded = 1;
    while (W.stop_waits) W.stop_waits = 0, take_stop();
    W.guarded = 0;
    atomic_signal_fence(memory_order_seq_cst);
  } while (W.stop_waits);
}

static void on_stop_signal(int _, siginfo_t *info, void *context) {
  (void)_, (void)context;
  if (info->si_code != SI_QUEUE) return; /* not from the zygote: it has no value */
  int problem = errno;
  W.stop = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
  W.stop_waits = 1;
  if (!W.guarded) unguard();
  errno = problem;
}

/* In the zygote, whose workers inherit it: a signal without a handler would end them, and the host may have blocked it. */
static int handle_stops(void) {
  struct sigaction action = {.sa_sigaction = on_stop_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
  sigset_t stops;
  sigemptyset(&action.sa_mask);
  sigemptyset(&stops);
  sigaddset(&stops, STOP_SIGNAL);
  return !sigaction(STOP_SIGNAL, &action, NULL) && !sigprocmask(SIG_UNBLOCK, &stops, NULL);
}

/* ---- The order of keys ------------------------------------------------------------------------------------------------ */

/* As in prelude/order.lua: integers, other numbers, strings, false, true, null, everything else as Lua has it. */
enum { INTEGER_KEY, FLOAT_KEY, TEXT_KEY, FALSE_KEY, TRUE_KEY, NULL_KEY, OTHER_KEY, FEW_KEYS = 12, LEAST_ROOM = 1024 };

typedef struct {
  uint64_t rank; /* within its kind: of a text its first eight bytes */
  const char *text;
  size_t size;
  size_t at, length; /* its place among the keys, or the place of its field in a text */
  int kind;
} Key;

static Key text_key(const char *text, size_t size) {
  Key key = {.kind = TEXT_KEY, .text = text, .size = size};
  for (size_t i = 0; i < 8; i++) key.rank = key.rank << 8 | (i < size ? (unsigned char)text[i] : 0);
  return key;
}

static Key key_at(lua_State *L, int index) {
  Key key = {.kind = OTHER_KEY};
  switch (p_lua_type(L, index)) {
    case T_STRING: {
      size_t size;
      const char *text = p_lua_tolstring(L, index, &size);
      return text_key(text, size);
    }
    case T_NUMBER:
      if (p_lua_isinteger(L, index)) {
        key.kind = INTEGER_KEY;
        key.rank = (uint64_t)p_lua_tointegerx(L, index, NULL) ^ 1ULL << 63;
      } else {
        double value = p_lua_tonumberx(L, index, NULL);
        key.kind = FLOAT_KEY;
        memcpy(&key.rank, &value, sizeof value);
        key.rank = key.rank >> 63 ? ~key.rank : key.rank | 1ULL << 63;
      }
      return key;
    case T_BOOLEAN: key.kind = p_lua_toboolean(L, index) ? TRUE_KEY : FALSE_KEY; return key;
    case T_LIGHT: key.kind = NULL_KEY; return key; /* scripts have no other */
    default: return key;
  }
}

static int compare_keys(const void *left, const void *right) {
  const Key *a = left, *b = right;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  if (a->kind == TEXT_KEY) {
    int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order ? order : a->size < b->size ? -1 : a->size > b->size;
  }
  return a->at < b->at ? -1 : a->at > b->at;
}

static void sort_keys(Key *keys, size_t count) {
  if (count > FEW_KEYS) {
    qsort(keys, count, sizeof *keys, compare_keys);
    return;
  }
  for (size_t i = 1; i < count; i++) {
    Key key = keys[i];
    size_t at = i;
    for (; at && compare_keys(&keys[at - 1], &key) > 0; at--) keys[at] = keys[at - 1];
    keys[at] = key;
  }
}

static int add_key(Key key) {
  if (!room_for(&W.keys, sizeof key)) return 0;
  memcpy(W.keys.data + W.keys.size, &key, sizeof key);
  W.keys.size += sizeof key;
  return 1;
}

/* Whether a table is a sequence or has one key: not its order by chance, which differs from process to process, and with it the
 * number of operations. */
static int is_in_order(lua_State *L, int table) {
  p_lua_pushnil(L);
  for (lua_Integer index = 1; p_lua_next(L, table); index++) {
    pop(L, 1);
    if (p_lua_isinteger(L, -1) && p_lua_tointegerx(L, -1, NULL) == index) continue;
    int more = p_lua_next(L, table);
    if (more) pop(L, 2);
    return index == 1 && !more;
  }
  return 1;
}

static int no_memory(lua_State *L) {
  shrink(&W.keys);
  p_lua_pushlstring(L, "not enough memory", 17); /* as Lua says it */
  return p_lua_error(L);
}

/* The first key of a table with several, on the top of the stack. */
static int push_least(lua_State *L, int table) {
  Key best = {.kind = OTHER_KEY + 1};
  size_t at = 0;
  p_lua_pushnil(L);
  p_lua_pushnil(L);
  for (; p_lua_next(L, table); at++) {
    pop(L, 1);
    Key key = key_at(L, -1);
    key.at = at;
    if (compare_keys(&key, &best) > 0) continue;
    best = key;
    p_lua_pushvalue(L, -1);
    p_lua_rotate(L, -3, 1); /* under the key that the loop goes on from */
    p_lua_rotate(L, -2, 1);
    pop(L, 1);
  }
  return 1;
}

/* Whether the script's memory has room for so many bytes more. */
static int has_room(lua_State *L, size_t size) {
  if (!W.limit || W.used + size <= W.limit) return 1;
  p_lua_gc(L, GC_COLLECT);
  return W.used + size <= W.limit;
}

/* arrange(table, least): its keys in order, as a list; nil where lua_next goes through them in the same order, false where there is
 * no memory for the list. With `least`, the first key only. */
static int l_arrange(lua_State *L) {
  int least = p_lua_toboolean(L, 2);
  p_lua_settop(L, 1);
  if (is_in_order(L, 1)) {
    p_lua_pushnil(L);
    if (least && p_lua_next(L, 1)) pop(L, 1);
    return p_lua_gettop(L) - 1;
  }
  if (least) return push_least(L, 1);
  W.keys.size = 0;
  p_lua_pushnil(L);
  for (size_t at = 0; p_lua_next(L, 1); at++) {
    pop(L, 1);
    Key key = key_at(L, -1);
    key.at = at;
    if (!add_key(key)) return no_memory(L);
  }
  Key *keys = (Key *)W.keys.data;
  size_t count = W.keys.size / sizeof *keys;
  if (!has_room(L, count * 16 + LEAST_ROOM)) {
    shrink(&W.keys);
    p_lua_pushboolean(L, 0);
    return 1;
  }
  sort_keys(keys, count);
  p_lua_createtable(L, (int)count, 0); /* may raise: the keys stay in their buffer */
  for (size_t i = 0; i < count; i++) keys[keys[i].at].length = i + 1; /* where each goes */
  p_lua_pushnil(L);
  for (size_t at = 0; p_lua_next(L, 1); at++) {
    pop(L, 1);
    p_lua_pushvalue(L, -1);
    p_lua_rawseti(L, 2, (lua_Integer)keys[at].length);
  }
  shrink(&W.keys);
  return 1;
}

/* The `next` of scripts: from one integer to the one after it; all else is for the function in order.lua. So is every step while there
 * is a hook, because its operations may be counted. */
static int l_step(lua_State *L) {
  p_lua_settop(L, 2);
  if (p_lua_type(L, 1) == T_TABLE && p_lua_isinteger(L, 2) && !p_lua_gethook(L)) {
    lua_Integer key = p_lua_tointegerx(L, 2, NULL);
    if (key < INT64_MAX) {
      p_lua_pushinteger(L, key + 1);
      if (p_lua_rawgeti(L, 1, key + 1) != T_NIL) return 2;
      pop(L, 2);
    }
  }
  p_lua_pushvalue(L, REGISTRY - 1); /* the closure's own value */
  p_lua_rotate(L, 1, 1);
  p_lua_callk(L, 2, -1, 0, NULL);
  return p_lua_gettop(L);
}

/* next(f): l_step with that function. */
static int l_next(lua_State *L) {
  p_lua_settop(L, 1);
  p_lua_pushcclosure(L, l_step, 1);
  return 1;
}

/* ---- JSON for the host ----------------------------------------------------------------------------------------------- */

static int put(const char *data, size_t size) {
  if (!room_for(&W.out, size)) return 0;
  memcpy(W.out.data + W.out.size, data, size);
  W.out.size += size;
  return 1;
}

#define PUT(text) put(text, sizeof(text) - 1)

/* The length of the valid UTF-8 sequence at `at`, or 0. As Lua's utf8.len and Python's decoder see it. */
static int utf8_length(const unsigned char *at, const unsigned char *end) {
  unsigned char c = at[0];
  if (c < 0x80) return 1;
  int n = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (!n || end - at < n) return 0;
  for (int i = 1; i < n; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  if ((c == 0xe0 && at[1] < 0xa0) || (c == 0xed && at[1] > 0x9f)) return 0;
  if ((c == 0xf0 && at[1] < 0x90) || (c == 0xf4 && at[1] > 0x8f)) return 0;
  return n;
}

/* How many bytes at `at`, where no valid sequence is, one U+FFFD stands for: as Python's decoder sees it. */
static int bad_length(const unsigned char *at, const unsigned char *end) {
  unsigned char c = at[0], low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80, high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
  if (c < 0xe0 || c > 0xf4 || end - at < 2 || at[1] < low || at[1] > high) return 1;
  return c >= 0xf0 && end - at > 2 && (at[2] & 0xc0) == 0x80 ? 3 : 2;
}

/* Whether all of the eight bytes at `at` stand in a JSON string as they are: none below 0x20, above 0x7f, '"' or '\\'. */
static int eight_plain(const unsigned char *at) {
  const uint64_t each = 0x0101010101010101u, high = 0x8080808080808080u;
  uint64_t bytes, quote, slash;
  memcpy(&bytes, at, sizeof bytes);
  quote = bytes ^ (each * '"');
  slash = bytes ^ (each * '\\');
  /* A byte below a bound borrows from its high bit when the bound is taken from it. Where a borrow goes on into the next byte,
   * the one below it was found already. */
  return !((bytes | (bytes - each * 0x20) | (quote - each) | (slash - each)) & high);
}

/* A JSON string. Where it is not UTF-8: nothing and 0, or U+FFFD in its place with `lossy`. */
static int put_string(const char *text, size_t size, int lossy) {
  static const char hex[] = "0123456789abcdef";
  if (!room_for(&W.out, size + 64)) return 0;
  const unsigned char *at = (const unsigned char *)text, *end = at + size, *plain = at;
  W.out.data[W.out.size++] = '"';
  while (at < end) {
    unsigned char c = *at;
    if (c >= 0x20 && c != '"' && c != '\\' && c < 0x80) {
      at++;
      while (end - at >= 8 && eight_plain(at)) at += 8;
      continue;
    }
    int n = utf8_length(at, end);
    if (n > 1) {
      at += n;
      continue;
    }
    if (!put((const char *)plain, (size_t)(at - plain))) return 0;
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t') {
      escape[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : (char)c;
      if (!put(escape, 2)) return 0;
    } else if (c < 0x20) {
      if (!put(escape, 6)) return 0;
    } else {
      if (!lossy) return 0;
      if (!PUT("\xef\xbf\xbd")) return 0;
      at += bad_length(at, end) - 1;
    }
    plain = ++at;
  }
  return put((const char *)plain, (size_t)(at - plain)) && PUT("\"");
}

/* The digits of a number, which end at `end`; where they begin. */
static char *write_digits(char *end, unsigned long long rest) {
  do *--end = (char)('0' + rest % 10);
  while (rest /= 10);
  return end;
}

static int put_integer(lua_Integer value) {
  char digits[24], *end = digits + sizeof digits;
  char *start = write_digits(end, value < 0 ? 0ULL - (unsigned long long)value : (unsigned long long)value);
  if (value < 0) *--start = '-';
  return put(start, (size_t)(end - start));
}

/* A float so that reading it gives back the same one. Most are short decimals: where the value is a whole number of
 * thousandths, and dividing gives it back, its decimal form is exact to the reader. */
static int put_float(double value) {
  double scaled = value * 1000.0;
  if (scaled > -9e15 && scaled < 9e15 && scaled != 0.0) {
    long long whole = (long long)scaled;
    if ((double)whole == scaled && (double)whole / 1000.0 == value) {
      unsigned long long size = whole < 0 ? 0ULL - (unsigned long long)whole : (unsigned long long)whole;
      unsigned rest = (unsigned)(size % 1000);
      char tail[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
      size_t length = tail[3] != '0' ? 4 : tail[2] != '0' ? 3 : 2;
      if (whole < 0 && !PUT("-")) return 0;
      return put_integer((lua_Integer)(size / 1000)) && put(tail, length);
    }
  }
  char text[40];
  int n = snprintf(text, sizeof text, "%.17g", value);
  if (!put(text, (size_t)n)) return 0;
  return strpbrk(text, ".e") ? 1 : PUT(".0");
}

static size_t nodes, most_nodes;

/* What is not ordinary (limits passed, bytes that are not text, keys that are not strings, holes, metatables of scripts) is
 * not encoded here: the answer is 0, and encode.lua does it again with exact messages. */
static int put_value(lua_State *L, int index, unsigned depth);

static int put_items(lua_State *L, int index, size_t count, unsigned depth) {
  if (!PUT("[")) return 0;
  for (size_t i = 1; i <= count; i++) {
    p_lua_rawgeti(L, index, (lua_Integer)i);
    int ok = (i == 1 || PUT(",")) && put_value(L, p_lua_gettop(L), depth);
    pop(L, 1);
    if (!ok) return 0;
  }
  return PUT("]");
}

static int put_list(lua_State *L, int index, size_t count, unsigned depth) {
  if (count > W.max_array || (nodes += count) > most_nodes) return 0;
  /* A border says nothing of other keys: only counting tells whether these are all. */
  size_t all = 0;
  p_lua_pushnil(L);
  while (p_lua_next(L, index)) {
    pop(L, 1);
    if (++all > count) {
      pop(L, 1);
      return 0;
    }
  }
  return all == count && put_items(L, index, count, depth);
}

/* Whether an element is there; the stack stays as it was. */
static int has(lua_State *L, int table, lua_Integer at) {
  int there = p_lua_rawgeti(L, table, at) != T_NIL;
  pop(L, 1);
  return there;
}

/* A list with nulls; see prelude/nulls.lua. `meta` is its metatable, `positions` what that knows of them. */
static int put_list_with_nulls(lua_State *L, int index, int meta, int positions, unsigned depth) {
  p_lua_rawgeti(L, REGISTRY, W.count);
  p_lua_rawget(L, meta);
  lua_Integer count = p_lua_tointegerx(L, -1, NULL);
  pop(L, 1);
  while (count > 0 && !has(L, index, count) && !has(L, positions, count)) count--;
  if (count < 0 || (size_t)count > W.max_array || (nodes += (size_t)count) > most_nodes) return 0;
  p_lua_pushnil(L);
  while (p_lua_next(L, index)) {
    pop(L, 1);
    lua_Integer key = p_lua_isinteger(L, -1) ? p_lua_tointegerx(L, -1, NULL) : 0;
    if (key < 1 || key > count) {
      pop(L, 1);
      return 0;
    }
  }
  return put_items(L, index, (size_t)count, depth);
}

/* A field's key, which it adds to the keys of the object. */
static int put_key(lua_State *L, int index, size_t *size) {
  size_t length;
  const char *text = p_lua_type(L, index) == T_STRING ? p_lua_tolstring(L, index, &length) : NULL;
  if (!text || (length && text[0] == 1) || length > W.max_string || ++*size > W.max_array || ++nodes > most_nodes) return 0;
  if (*size > 1 && !PUT(",")) return 0;
  Key key = text_key(text, length);
  key.at = W.out.size;
  return add_key(key) && put_string(text, length, 0) && PUT(":");
}

/* The end of a field, whose key is number `at` of all keys. */
static void end_field(size_t at) {
  Key *key = (Key *)W.keys.data + at;
  key->length = W.out.size - key->at;
}

/* The fields of an object, which were written as Lua has them, in the order of their keys: the last `count`. */
static int order_fields(size_t count) {
  Key *keys = (Key *)(W.keys.data + W.keys.size) - count;
  size_t i = 1;
  while (i < count && compare_keys(&keys[i - 1], &keys[i]) < 0) i++;
  if (i >= count) return 1;
  size_t start = keys[0].at, size = W.out.size - start, at = start;
  W.moved.size = 0;
  if (!room_for(&W.moved, size)) return 0;
  memcpy(W.moved.data, W.out.data + start, size);
  sort_keys(keys, count);
  for (i = 0; i < count; i++) {
    if (i) W.out.data[at++] = ',';
    memcpy(W.out.data + at, W.moved.data + (keys[i].at - start), keys[i].length);
    at += keys[i].length;
  }
  shrink(&W.moved);
  return 1;
}

/* `absent`, where it is not 0, is the set of fields that are null. */
static int put_object(lua_State *L, int index, unsigned depth, int absent) {
  if (!PUT("{")) return 0;
  size_t size = 0, before = W.keys.size, first = before / sizeof(Key);
  p_lua_pushnil(L);
  while (p_lua_next(L, index)) {
    if (!put_key(L, -2, &size) || !put_value(L, p_lua_gettop(L), depth)) {
      pop(L, 2);
      return 0;
    }
    end_field(first + size - 1);
    pop(L, 1);
  }
  if (absent) p_lua_pushnil(L);
  while (absent && p_lua_next(L, absent)) {
    p_lua_pushvalue(L, -2);
    int there = p_lua_rawget(L, index) != T_NIL; /* the script has given it a value since, past the metatable */
    pop(L, 2);
    if (there) continue;
    if (!(put_key(L, -1, &size) && PUT("null"))) {
      pop(L, 1);
      return 0;
    }
    end_field(first + size - 1);
  }
  int ok = order_fields(size);
  W.keys.size = before;
  return ok && PUT("}");
}

static int put_table(lua_State *L, int index, unsigned depth) {
  size_t count = (size_t)p_lua_rawlen(L, index);
  int top = p_lua_gettop(L), meta = top + 1, known = top + 2, ok = 0;
  if (!p_lua_getmetatable(L, index)) return count ? put_list(L, index, count, depth) : put_object(L, index, depth, 0);
  if (p_lua_topointer(L, meta) == W.array) {
    pop(L, 1);
    return put_list(L, index, count, depth);
  }
  p_lua_rawgeti(L, REGISTRY, W.fields);
  if (p_lua_rawget(L, meta) == T_TABLE) {
    ok = !count && put_object(L, index, depth, known);
  } else {
    pop(L, 1);
    p_lua_rawgeti(L, REGISTRY, W.positions);
    ok = p_lua_rawget(L, meta) == T_TABLE && put_list_with_nulls(L, index, meta, known, depth);
  }
  p_lua_settop(L, top);
  return ok;
}

static int put_value(lua_State *L, int index, unsigned depth) {
  if (W.out.size > W.max_memory) return 0; /* a table may hold one string a thousand times */
  switch (p_lua_type(L, index)) {
    case T_NIL: return PUT("null");
    case T_BOOLEAN: return p_lua_toboolean(L, index) ? PUT("true") : PUT("false");
    case T_LIGHT: return p_lua_topointer(L, index) == W.null && PUT("null");
    case T_NUMBER: {
      if (p_lua_isinteger(L, index)) return put_integer(p_lua_tointegerx(L, index, NULL));
      double value = p_lua_tonumberx(L, index, NULL);
      return value - value == 0.0 && put_float(value);
    }
    case T_STRING: {
      size_t size;
      const char *text = p_lua_tolstring(L, index, &size);
      return size <= W.max_string && put_string(text, size, 0);
    }
    case T_TABLE: {
      if (depth >= W.max_depth || depth >= MOST_DEPTH || !p_lua_checkstack(L, 16)) return 0;
      return put_table(L, index, depth + 1);
    }
    default: return 0;
  }
}

/* The beginning of a list of values, after so many bytes of something else. */
static int begin_values(lua_State *L, size_t count, size_t most, size_t after) {
  W.out.size = W.held = 0;
  shrink(&W.keys);
  nodes = 0;
  most_nodes = most < W.max_nodes ? most : W.max_nodes;
  if (!room_for(&W.out, after)) return 0;
  W.out.size = after;
  return count <= W.max_array && p_lua_checkstack(L, 8) && PUT("[");
}

static int put_values(lua_State *L, size_t count) {
  int ok = 1;
  for (size_t i = 1; ok && i <= count; i++) {
    p_lua_rawgeti(L, 2, (lua_Integer)i);
    ok = (i == 1 || PUT(",")) && put_value(L, p_lua_gettop(L), 0);
    pop(L, 1);
  }
  return ok;
}

static int end_values(lua_State *L, int ok) {
  if (!ok || !PUT("]") || W.out.size > W.max_memory) {
    shrink(&W.out);
    p_lua_pushnil(L);
    return 1;
  }
  p_lua_pushlstring(L, W.out.data, W.out.size);
  shrink(&W.out);
  p_lua_pushinteger(L, (lua_Integer)nodes);
  return 2;
}

/* encode(count, values, most): JSON text of a list of `count` values and how many elements it has; nil where encode.lua
 * must do it. */
static int l_encode(lua_State *L) {
  size_t count = (size_t)p_lua_tointegerx(L, 1, NULL);
  size_t most = p_lua_type(L, 3) == T_NUMBER ? (size_t)p_lua_tointegerx(L, 3, NULL) : W.max_nodes;
  return end_values(L, begin_values(L, count, most, 0) && put_values(L, count));
}

/* encode_result(count, values): the same of what a run returned; the text stays here, and its size is given instead. */
static int l_encode_result(lua_State *L) {
  size_t count = (size_t)p_lua_tointegerx(L, 1, NULL), head = HEADER + SPENT_SIZE;
  int ok = W.in_run && begin_values(L, count, W.max_nodes, head) && put_values(L, count) && PUT("]");
  if (!ok || W.out.size - head > W.max_memory) {
    shrink(&W.out);
    return 0;
  }
  W.held = W.out.size - head;
  p_lua_pushinteger(L, (lua_Integer)W.held);
  p_lua_pushinteger(L, (lua_Integer)nodes);
  return 2;
}

/* encode_all(…): the same of the values themselves. */
static int l_encode_all(lua_State *L) {
  int count = p_lua_gettop(L), ok = begin_values(L, (size_t)count, W.max_nodes, 0);
  for (int i = 1; ok && i <= count; i++) ok = (i == 1 || PUT(",")) && put_value(L, i, 0);
  return end_values(L, ok);
}

/* ---- MessagePack from the host ---------------------------------------------------------------------------------------- */

typedef struct {
  const unsigned char *at, *end;
  unsigned depth;
  int broken; /* it ends too soon, is nested too deeply, or holds what no value of ours has */
  /* Names that came before, for Lua takes long to look one up: where they are in the bytes, and, at the same number, in a
   * table at this index of the stack. 0: there is none. */
  int names;
  const unsigned char *seen[KNOWN_NAMES];
} Reader;

static uint64_t number_of(Reader *r, int size) {
  uint64_t value = 0;
  if (r->end - r->at < size) {
    r->at = r->end;
    r->broken = 1;
    return 0;
  }
  for (int i = 0; i < size; i++) value = value << 8 | *r->at++;
  return value;
}

static void push_value(lua_State *L, Reader *r);

static void push_text(lua_State *L, Reader *r, size_t size) {
  if ((size_t)(r->end - r->at) < size) {
    size = (size_t)(r->end - r->at);
    r->broken = 1;
  }
  p_lua_pushlstring(L, (const char *)r->at, size);
  r->at += size;
}

/* The name of a field, which is mostly a short text, and one that came before. */
static void push_name(lua_State *L, Reader *r) {
  size_t size = r->at < r->end ? (size_t)(*r->at - 0xa0) : 0;
  if (!r->names || size - 1 > 30 || (size_t)(r->end - r->at) <= size) {
    push_value(L, r);
    return;
  }
  const unsigned char *name = r->at; /* with its tag, which holds its size */
  r->at += size + 1;
  size_t slot = (size * 7 + name[1] * 3 + name[size]) % KNOWN_NAMES;
  if (r->seen[slot] && !memcmp(r->seen[slot], name, size + 1)) {
    p_lua_rawgeti(L, r->names, (lua_Integer)slot + 1);
    return;
  }
  p_lua_pushlstring(L, (const char *)name + 1, size);
  p_lua_pushvalue(L, -1);
  p_lua_rawseti(L, r->names, (lua_Integer)slot + 1);
  r->seen[slot] = name;
}

/* Whether a null is next, which it then passes. */
static int is_null(Reader *r) {
  if (r->at >= r->end || *r->at != NONE) return 0;
  r->at++;
  return 1;
}

static int deeper(lua_State *L, Reader *r, size_t count) {
  /* Every element takes a byte at the least: a count that is not true reserves no memory. */
  if (count > (size_t)(r->end - r->at) || count > MOST_ELEMENTS || r->depth >= MOST_DEPTH || !p_lua_checkstack(L, 8)) {
    r->broken = 1;
    p_lua_pushnil(L);
    return 0;
  }
  r->depth++;
  return 1;
}

static void push_list(lua_State *L, Reader *r, size_t count) {
  if (!deeper(L, r, count)) return;
  p_lua_createtable(L, (int)count, 0);
  int nulls = 0;
  for (size_t i = 1; i <= count && !r->broken; i++) {
    if (is_null(r)) {
      nulls = 1;
      continue;
    }
    push_value(L, r);
    p_lua_rawseti(L, -2, (lua_Integer)i);
  }
  if (nulls) { /* they read as nil; the prelude's nulls remember where they were */
    p_lua_rawgeti(L, REGISTRY, W.null_array);
    p_lua_pushvalue(L, -2);
    p_lua_pushinteger(L, (lua_Integer)count);
    p_lua_callk(L, 2, 0, 0, NULL);
  } else {
    p_lua_rawgeti(L, REGISTRY, W.array_ref);
    p_lua_setmetatable(L, -2);
  }
  r->depth--;
}

static void push_object(lua_State *L, Reader *r, size_t count) {
  if (!deeper(L, r, count)) return;
  p_lua_createtable(L, 0, (int)count);
  int object = p_lua_gettop(L), nulls = 0; /* their keys are in a table above the object */
  for (size_t i = 0; i < count && !r->broken; i++) {
    push_name(L, r);
    int kind = p_lua_type(L, -1);
    if (kind != T_STRING && !(kind == T_NUMBER && p_lua_isinteger(L, -1))) r->broken = 1; /* Lua would raise for some */
    if (is_null(r)) {
      if (!nulls++) {
        p_lua_createtable(L, 1, 0);
        p_lua_rotate(L, -2, 1);
      }
      p_lua_rawseti(L, object + 1, nulls);
      continue;
    }
    push_value(L, r);
    if (r->broken)
      pop(L, 2);
    else
      p_lua_rawset(L, object);
  }
  if (nulls) {
    p_lua_rawgeti(L, REGISTRY, W.null_fields);
    p_lua_pushvalue(L, object);
    p_lua_pushvalue(L, object + 1);
    p_lua_callk(L, 2, 0, 0, NULL);
    p_lua_settop(L, object);
  }
  r->depth--;
}

static void push_value(lua_State *L, Reader *r) {
  if (r->at >= r->end) {
    r->broken = 1;
    p_lua_pushnil(L);
    return;
  }
  unsigned char tag = *r->at++;
  if (tag < 0x80) {
    p_lua_pushinteger(L, tag);
  } else if (tag < 0x90) {
    push_object(L, r, tag & 15);
  } else if (tag < 0xa0) {
    push_list(L, r, tag & 15);
  } else if (tag < 0xc0) {
    push_text(L, r, tag & 31);
  } else if (tag >= 0xe0) {
    p_lua_pushinteger(L, (signed char)tag);
  } else {
    switch (tag) {
      case 0xc2: p_lua_pushboolean(L, 0); break;
      case 0xc3: p_lua_pushboolean(L, 1); break;
      case 0xc4: case 0xd9: push_text(L, r, number_of(r, 1)); break;
      case 0xc5: case 0xda: push_text(L, r, number_of(r, 2)); break;
      case 0xc6: case 0xdb: push_text(L, r, number_of(r, 4)); break;
      case 0xca: {
        uint32_t bits = (uint32_t)number_of(r, 4);
        float value;
        memcpy(&value, &bits, 4);
        p_lua_pushnumber(L, value);
        break;
      }
      case 0xcb: {
        uint64_t bits = number_of(r, 8);
        double value;
        memcpy(&value, &bits, 8);
        p_lua_pushnumber(L, value);
        break;
      }
      case 0xcc: p_lua_pushinteger(L, (lua_Integer)number_of(r, 1)); break;
      case 0xcd: p_lua_pushinteger(L, (lua_Integer)number_of(r, 2)); break;
      case 0xce: p_lua_pushinteger(L, (lua_Integer)number_of(r, 4)); break;
      case 0xcf: {
        uint64_t value = number_of(r, 8);
        if (value >> 63) r->broken = 1;
        p_lua_pushinteger(L, (lua_Integer)value);
        break;
      }
      case 0xd0: p_lua_pushinteger(L, (int8_t)number_of(r, 1)); break;
      case 0xd1: p_lua_pushinteger(L, (int16_t)number_of(r, 2)); break;
      case 0xd2: p_lua_pushinteger(L, (int32_t)number_of(r, 4)); break;
      case 0xd3: p_lua_pushinteger(L, (int64_t)number_of(r, 8)); break;
      case 0xdc: push_list(L, r, number_of(r, 2)); break;
      case 0xdd: push_list(L, r, number_of(r, 4)); break;
      case 0xde: push_object(L, r, number_of(r, 2)); break;
      case 0xdf: push_object(L, r, number_of(r, 4)); break;
      case NONE: p_lua_pushnil(L); break;
      default:
        r->broken = 1;
        p_lua_pushnil(L);
    }
  }
}

/* ---- What the prelude calls -------------------------------------------------------------------------------------------- */

static int stopped_by(lua_State *L, int reason) {
  int none = 0;
  atomic_compare_exchange_strong(&W.reason, &none, reason);
  p_lua_pushinteger(L, -1);
  return 1;
}

static double cpu_since(void);

static void stop_gc(lua_State *L) {
  W.gc_stopped = 1;
  p_lua_gc(L, GC_STOP);
}

static void restart_gc(lua_State *L) {
  if (!W.gc_stopped) return;
  W.gc_stopped = 0;
  W.uncollected = 1;
  p_lua_gc(L, GC_RESTART); /* it does not count what was made while it was stopped */
}

/* After the end of a run: what the collector would have done if it had not been stopped, in steps until the next frame comes.
 * As usual it begins when twice as much is in use as was after the last time, and where memory may get scarce. It is not the
 * next run's work. */
static void collect_after_run(lua_State *L) {
  char byte;
  if (W.used < 2 * W.live && W.used < W.max_memory / 4) {
    W.uncollected = 0;
    return;
  }
  do {
    if (p_lua_gc(L, GC_STEP, 0)) { /* it has looked at everything */
      W.live = W.used;
      W.uncollected = 0;
      break;
    }
  } while (W.used > W.max_memory / 4 * 3 || recv(W.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
  cpu_since();
}

/* Tell the host what the script has that waits for a call: prelude/inspect.lua looks, and runs nothing of the script. */
static void inspect(lua_State *L, const char *payload, size_t length) {
  uint64_t call;
  uint32_t number;
  if (length != LOOK || !p_lua_checkstack(L, 8)) return;
  memcpy(&call, payload, sizeof call);
  memcpy(&number, payload + sizeof call, sizeof number);
  W.limit = 0; /* what it needs is bounded, and not the script's */
  p_lua_rawgeti(L, REGISTRY, W.inspect);
  p_lua_pushinteger(L, (lua_Integer)call);
  p_lua_pushinteger(L, (lua_Integer)number);
  size_t size = 0;
  const char *text = p_lua_pcallk(L, 2, 1, 0, 0, NULL) || p_lua_type(L, -1) != T_STRING ? "" : p_lua_tolstring(L, -1, &size);
  begin_sending();
  send_frame(INSPECTED, text, size); /* where the host is gone, the next receive tells */
  end_sending();
  pop(L, 1);
  limit_memory(0);
}

/* Before a large value is read: remember the names of fields. What comes is all in use: to look through it again and again while it
 * grows would take half as long as to make it. An allocation that fails still collects. Where one raises an error, the end of the
 * run sets this right. */
static void read_much(lua_State *L, Reader *r) {
  p_lua_createtable(L, KNOWN_NAMES, 0);
  r->names = p_lua_gettop(L);
  stop_gc(L);
}

/* Wait for answers: id, ok, value, … or -1 when the run must stop. */
static int take_answers(lua_State *L) {
  int kind, got;
  char *payload;
  size_t length;
  do {
    got = receive(&kind, &payload, &length);
    if (!got) _exit(0);
    if (got < 0) return stopped_by(L, REASON_MEMORY);
    if (kind == HALT) return stopped_by(L, length ? (unsigned char)payload[0] : REASON_CANCELLED);
    if (kind == INSPECT) inspect(L, payload, length);
  } while (kind != ANSWERS);
  Reader r = {.at = (const unsigned char *)payload, .end = (const unsigned char *)payload + length};
  size_t count = 0;
  if (r.at < r.end) {
    unsigned char tag = *r.at++;
    count = tag >= 0x90 && tag < 0xa0 ? (size_t)(tag & 15) : tag == 0xdc ? number_of(&r, 2) : tag == 0xdd ? number_of(&r, 4) : 0;
  }
  if (!count || count > MOST_ANSWERS) return stopped_by(L, REASON_CANCELLED);
  limit_memory(0); /* what the script holds already is its own */
  if (!p_lua_checkstack(L, (int)(count * 3) + 16)) return stopped_by(L, REASON_MEMORY);
  if (length > LARGE) read_much(L, &r);
  int top = p_lua_gettop(L);
  for (size_t i = 0; i < count && !r.broken; i++) {
    if (r.at >= r.end || *r.at++ != 0x93) r.broken = 1; /* [id, ok, value] */
    for (int part = 0; part < 3; part++) push_value(L, &r);
  }
  restart_gc(L);
  if (r.broken) {
    p_lua_settop(L, top);
    return stopped_by(L, REASON_CANCELLED);
  }
  return p_lua_gettop(L) - top;
}

/* exchange(calls): send calls (JSON, may be empty), wait for answers. */
static int l_exchange(lua_State *L) {
  size_t size;
  const char *calls = p_lua_tolstring(L, 1, &size);
  if (!flush_output()) return stopped_by(L, REASON_CANCELLED);
  if (size) {
    begin_sending();
    int ok = send_frame(CALLS, calls, size);
    end_sending();
    if (!ok) return stopped_by(L, REASON_CANCELLED);
  }
  return take_answers(L);
}

enum { LONG_ARGUMENTS = 1 << 14 };

/* ask(id, middle, arguments): the same with one call, [[id middle arguments]]. */
static int l_ask(lua_State *L) {
  size_t middle_size, size;
  const char *middle = p_lua_tolstring(L, 2, &middle_size), *arguments = p_lua_tolstring(L, 3, &size);
  int apart = size > LONG_ARGUMENTS; /* not copied */
  W.out.size = W.held = 0;
  if (!flush_output()) return stopped_by(L, REASON_CANCELLED);
  if (!room_for(&W.out, HEADER)) return stopped_by(L, REASON_MEMORY);
  W.out.size = HEADER;
  if (!PUT("[[") || !put_integer(p_lua_tointegerx(L, 1, NULL)) || !put(middle, middle_size) ||
      !(apart || (put(arguments, size) && PUT("]]"))))
    return stopped_by(L, REASON_MEMORY);
  put_header(W.out.data, CALLS, W.out.size - HEADER + (apart ? size + 2 : 0));
  begin_sending();
  int ok = send_all(W.out.data, W.out.size) && (!apart || (send_all(arguments, size) && send_all("]]", 2)));
  end_sending();
  shrink(&W.out);
  return ok ? take_answers(L) : stopped_by(L, REASON_CANCELLED);
}

static int l_cancel(lua_State *L) {
  size_t size;
  const char *ids = p_lua_tolstring(L, 1, &size);
  begin_sending();
  int ok = send_frame(CANCEL, ids, size);
  end_sending();
  if (!ok) stopped_by(L, REASON_CANCELLED);
  return 0;
}

/* emit(text): 0 when it was printed whole, 1 when max_output is reached, -1 when the run must stop. */
static int l_emit(lua_State *L) {
  size_t size;
  const char *text = p_lua_tolstring(L, 1, &size);
  size_t room = W.max_output > W.printed ? W.max_output - W.printed : 0, shown = size < room ? size : room;
  W.printed += size;
  int ok = 1;
  if (shown) {
    struct timespec now;
    begin_sending();
    ok = room_for(&W.pending, shown);
    if (ok) {
      memcpy(W.pending.data + W.pending.size, text, shown);
      W.pending.size += shown;
      clock_gettime(CLOCK_MONOTONIC, &now);
      long waited = (now.tv_sec - W.flushed.tv_sec) * 1000000000L + (now.tv_nsec - W.flushed.tv_nsec);
      if (W.pending.size >= FLUSH_BYTES || waited >= FLUSH_NANOSECONDS) ok = flush_locked();
    }
    end_sending();
  }
  if (!ok) return stopped_by(L, REASON_CANCELLED);
  p_lua_pushinteger(L, shown == size ? 0 : 1);
  return 1;
}

static int l_reason(lua_State *L) {
  p_lua_pushinteger(L, atomic_load(&W.reason));
  return 1;
}

/* enter(level, coroutine): it runs now, resumed by the one a level below. */
static int l_enter(lua_State *L) {
  int level = (int)p_lua_tointegerx(L, 1, NULL);
  lua_State *thread = p_lua_tothread(L, 2);
  guard();
  while (W.levels < level && W.levels < MOST_RUNNING) W.running[W.levels++] = W.L; /* one whose own `enter` failed */
  if (level < MOST_RUNNING && thread) {
    W.running[level] = thread;
    W.levels = level + 1;
  }
  if (thread && atomic_load(&W.reason)) p_lua_sethook(thread, W.hook, MASK_COUNT, 1);
  unguard();
  return 0;
}

static int l_leave(lua_State *L) {
  int level = (int)p_lua_tointegerx(L, 1, NULL);
  guard();
  if (level > 0 && level < W.levels) W.levels = level;
  unguard();
  return 0;
}

/* adopt(coroutine): take the hook off a new coroutine again. */
static int l_adopt(lua_State *L) {
  lua_State *thread = p_lua_tothread(L, 1);
  if (thread) p_lua_sethook(thread, NULL, 0, 0);
  return 0;
}

/* second(_, value): the value. */
static int l_second(lua_State *L) {
  p_lua_settop(L, 2);
  return 1;
}

/* fill(into, list, put): call put(into, list) while `into` has no metatable; not where everything is in place, because no
 * script has run here yet. To write it once more would copy the pages that it is in. */
static int l_fill(lua_State *L) {
  if (W.builtins_intact) return 0;
  p_lua_settop(L, 3);
  if (!p_lua_getmetatable(L, 1)) p_lua_pushnil(L);
  p_lua_pushnil(L);
  p_lua_setmetatable(L, 1);
  p_lua_pushvalue(L, 3);
  p_lua_pushvalue(L, 1);
  p_lua_pushvalue(L, 2);
  int failed = p_lua_pcallk(L, 2, 0, 0, 0, NULL);
  p_lua_pushvalue(L, 4);
  p_lua_setmetatable(L, 1);
  return failed ? p_lua_error(L) : 0; /* the error is on top */
}

/* quiet(): a hook that stands is called no more for now. */
static int l_quiet(lua_State *L) {
  (void)L;
  guard();
  if (p_lua_gethook(W.L)) p_lua_sethook(W.L, W.hook, MASK_COUNT, 1000000);
  unguard();
  return 0;
}

static int is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/* survey(source): its first word, nil without one, and whether it has brackets or quotes. */
static int l_survey(lua_State *L) {
  size_t size, start = 0, end;
  const char *source = p_lua_tolstring(L, 1, &size);
  int opens = 0;
  while (start < size && strchr(" \t\n\v\f\r", source[start]) && source[start]) start++;
  for (end = start; end < size && is_word(source[end]);) end++;
  for (size_t i = 0; i < size && !opens; i++) {
    char c = source[i];
    opens = c == '(' || c == '[' || c == '{' || c == '"' || c == '\'';
  }
  if (end > start)
    p_lua_pushlstring(L, source + start, end - start);
  else
    p_lua_pushnil(L);
  p_lua_pushboolean(L, opens);
  return 2;
}

/* In a worker that was forked by the native part Python is as it was at the fork, until it is needed. */
static int python_is_asleep;

static void wake_python(void) {
  if (!python_is_asleep) return;
  python_is_asleep = W.builtins_intact = 0;
  PyOS_AfterFork_Child();
}

/* ready(): before something of Python's is called. */
static int l_ready(lua_State *L) {
  (void)L;
  wake_python();
  return 0;
}

/* used(): bytes of Lua memory in use. */
static int l_used(lua_State *L) {
  p_lua_pushinteger(L, (lua_Integer)W.used);
  return 1;
}

static size_t limit_field(lua_State *L, const char *name) {
  p_lua_getfield(L, 1, name);
  lua_Integer value = p_lua_tointegerx(L, -1, NULL);
  pop(L, 1);
  return value < 0 ? 0 : (size_t)value;
}

/* limits(table): what each run from now on may spend. */
static int l_limits(lua_State *L) {
  W.max_memory = limit_field(L, "max_memory");
  W.base = limit_field(L, "memory_base") + W.rehearsed;
  W.max_output = limit_field(L, "max_output");
  W.max_string = limit_field(L, "max_string");
  W.max_array = limit_field(L, "max_array");
  W.max_nodes = limit_field(L, "max_nodes");
  W.max_depth = limit_field(L, "max_depth");
  if (W.limits) p_luaL_unref(L, REGISTRY, W.limits);
  p_lua_pushvalue(L, 1);
  W.limits = p_luaL_ref(L, REGISTRY);
  return 0;
}

static int reference(lua_State *L, const char *field) {
  p_lua_getfield(L, 1, field);
  return p_luaL_ref(L, REGISTRY);
}

/* bind{run =, inputs =, kept =, inspect =, null =, array =, null_fields =, null_array =}: what of the prelude is used here. */
static int l_bind(lua_State *L) {
  W.run = reference(L, "run");
  W.inputs = reference(L, "inputs");
  W.kept = reference(L, "kept");
  W.inspect = reference(L, "inspect");
  W.null_fields = reference(L, "null_fields");
  W.null_array = reference(L, "null_array");
  W.array_ref = reference(L, "array");
  W.fields = reference(L, "fields");
  W.positions = reference(L, "positions");
  W.count = reference(L, "count");
  p_lua_getfield(L, 1, "array");
  W.array = p_lua_topointer(L, -1);
  p_lua_getfield(L, 1, "null");
  W.null = p_lua_topointer(L, -1);
  pop(L, 2);
  return 0;
}

/* ---- Running scripts ------------------------------------------------------------------------------------------------- */

static const char *const REASONS[] = {"", "time", "cancelled", "calls", "memory"};

static int text_at(lua_State *L, int index, const char **text, size_t *size) {
  if (index > p_lua_gettop(L) || p_lua_type(L, index) != T_STRING) {
    *text = "";
    *size = 0;
    return 0;
  }
  *text = p_lua_tolstring(L, index, size);
  return 1;
}

static int put_text_or(lua_State *L, int index, const char *instead) {
  const char *text;
  size_t size;
  return text_at(L, index, &text, &size) ? put(text, size) : put(instead, strlen(instead));
}

/* DONE: how a run ended that did not end well; results from `first` on, as engine.run gives them. */
static int put_done(lua_State *L, int first, const char *kind, size_t kind_size, double cpu) {
  int stop = kind_size == 4 && !memcmp(kind, "stop", 4);
  const char *limit = "", *message;
  size_t limit_size = 0, size;
  char numbers[160];
  if (stop && !text_at(L, first + 1, &limit, &limit_size)) {
    lua_Integer reason = p_lua_tointegerx(L, first + 1, NULL);
    limit = reason > 0 && reason <= REASON_MEMORY ? REASONS[reason] : "";
    limit_size = strlen(limit);
  }
  text_at(L, first + (stop ? 2 : 1), &message, &size);
  int counted = p_lua_gettop(L) >= first + 4 && p_lua_type(L, first + 4) == T_NUMBER;
  size_t cut = W.printed > W.max_output ? W.printed - W.max_output : 0;
  int length = snprintf(numbers, sizeof numbers, ",\"memory\":%zu,\"cpu\":%f,\"cut\":%zu,\"values\":[],\"frames\":",
                        W.peak > W.base ? W.peak - W.base : 0, cpu, cut);
  return PUT("{\"kind\":\"") && put(kind, kind_size) && PUT("\",\"limit\":\"") && put(limit, limit_size) &&
         PUT("\",\"message\":") && put_string(message, size, 1) && PUT(",\"operations\":") &&
         (counted ? put_integer(p_lua_tointegerx(L, first + 4, NULL)) : PUT("null")) && put(numbers, (size_t)length) &&
         put_text_or(L, first + (stop ? 3 : 2), "[]") && PUT(",\"extra\":") &&
         put_text_or(L, first + (stop ? 5 : 3), "{}") && PUT("}");
}

/* VALUE: a run that ended well; its values are JSON text already, of that size, or are where they belong. */
static int put_value_frame(lua_State *L, int first, const char *text, size_t size, double cpu) {
  int counted = p_lua_gettop(L) >= first + 4 && p_lua_type(L, first + 4) == T_NUMBER;
  long long spent[4] = {counted ? p_lua_tointegerx(L, first + 4, NULL) : -1,
                        (long long)(W.peak > W.base ? W.peak - W.base : 0), 0,
                        (long long)(W.printed > W.max_output ? W.printed - W.max_output : 0)};
  memcpy(&spent[2], &cpu, sizeof cpu);
  if (W.held) {
    memcpy(W.out.data + HEADER, spent, SPENT_SIZE);
    return 1;
  }
  return put((const char *)spent, SPENT_SIZE) && put(text, size);
}

/* The processor time since this was last asked: a run's begins where the one before it ended, for asking takes a system call.
 * Waiting is not the script's work. */
static double cpu_since(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  double before = W.cpu + (double)(W.spin.spent - W.spun) / 1e9;
  W.cpu = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
  W.spun = W.spin.spent;
  return W.cpu > before ? W.cpu - before : 0;
}

/* engine.run and its arguments; protected, for only memory can be wanting. It is called from outside, so that the stack
 * below a script is the same as with the loop in Python. */
static int arguments_of_run(lua_State *L) {
  const char *payload = W.in.data + HEADER;
  size_t length = W.in_start - HEADER;
  uint64_t seed;
  char chunk[32], *end = chunk + sizeof chunk, *name = end;
  memcpy(&seed, payload + 4, 8);
  if (W.number != 1) {
    name = write_digits(end, W.number);
    *--name = '#';
  }
  name -= 6;
  memcpy(name, "script", 6);
  p_lua_rawgeti(L, REGISTRY, W.run);
  p_lua_pushlstring(L, payload + RUN_HEAD, length - RUN_HEAD);
  p_lua_pushlstring(L, name, (size_t)(end - name));
  p_lua_pushinteger(L, (lua_Integer)seed);
  p_lua_rawgeti(L, REGISTRY, W.limits);
  p_lua_pushinteger(L, W.number);
  return 6;
}

/* Globals of the next run only: [[name, value], …]; protected, too. */
static int take_inputs(lua_State *L) {
  Reader r = {.at = (const unsigned char *)W.in.data + HEADER, .end = (const unsigned char *)W.in.data + W.in_start};
  if (W.in_start > LARGE) read_much(L, &r);
  p_lua_rawgeti(L, REGISTRY, W.inputs);
  push_value(L, &r);
  if (!r.broken) p_lua_callk(L, 1, 0, 0, NULL);
  return r.broken;
}

/* What of the run was kept for the next ones, where it is long enough to be: see prelude/kept.lua. */
static char kept_of_run(lua_State *L, size_t size) {
  if (size < KEPT_FROM && W.printed < KEPT_FROM) return 0;
  p_lua_rawgeti(L, REGISTRY, W.kept);
  char flags = p_lua_pcallk(L, 0, 1, 0, 0, NULL) ? 0 : (char)p_lua_tointegerx(L, -1, NULL);
  pop(L, 1);
  return flags;
}

static int ended_for_memory(lua_State *L, int first) {
  const char *limit;
  size_t size;
  return text_at(L, first + 1, &limit, &size) && size == 6 && !memcmp(limit, "memory", 6);
}

static int run(const char *payload, size_t length) {
  lua_State *L = W.L;
  if (length < RUN_HEAD) return 0;
  memcpy(&W.number, payload, 4);
  W.has_run |= W.number > 0;
  W.printed = 0;
  W.flushed = (struct timespec){0, 0};
  W.peak = W.used;
  limit_memory(length);
  guard();
  atomic_store(&W.reason, 0);
  W.running_number = W.number;
  if (W.number && W.early_number == W.number) trip(W.early_reason);
  unguard();
  int top = p_lua_gettop(L), first = top + 1;
  W.in_run = 1;
  W.held = 0;
  p_lua_pushcclosure(L, arguments_of_run, 0);
  int failed = p_lua_pcallk(L, 0, 6, 0, 0, NULL);
  if (!failed) failed = p_lua_pcallk(L, 5, MULTIPLE, 0, 0, NULL);
  guard();
  W.running_number = 0;
  W.levels = 1;
  p_lua_sethook(L, NULL, 0, 0);
  unguard();
  W.limit = 0;
  W.in_run = 0;
  restart_gc(L);
  W.builtins_intact &= W.number == 0;
  double cpu = cpu_since();
  const char *kind;
  size_t size;
  int ended = DONE, ok = 1;
  text_at(L, first, &kind, &size);
  if (failed) {
    int reason = atomic_load(&W.reason);
    int memory = failed == 4 || (size && strstr(kind, "not enough memory"));
    char instead[64];
    p_lua_settop(L, top);
    snprintf(instead, sizeof instead, "%s", reason ? REASONS[reason <= REASON_MEMORY ? reason : 0] : "memory");
    if (reason || memory) {
      static const char why[] = "the script needed more memory than max_memory allows";
      p_lua_pushlstring(L, "stop", 4);
      p_lua_pushlstring(L, instead, strlen(instead));
      p_lua_pushlstring(L, why, reason ? 0 : sizeof why - 1);
    } else {
      p_lua_pushlstring(L, "runtime", 7);
      p_lua_pushlstring(L, "the engine failed", 17);
    }
    text_at(L, first, &kind, &size);
  }
  int well = size == 2 && !memcmp(kind, "ok", 2);
  const char *values = "";
  size_t values_size = 0;
  if (!well || text_at(L, first + 1, &values, &values_size)) W.held = 0;
  if (!W.held) {
    W.out.size = 0;
    ok = room_for(&W.out, HEADER) != 0;
    W.out.size = HEADER;
  }
  char kept = kept_of_run(L, W.held ? W.held : values_size);
  if (well) {
    ended = kept == 1 ? VALUE_KEPT : VALUE;
    ok = ok && put_value_frame(L, first, values, values_size, cpu);
  } else {
    ok = ok && put_done(L, first, kind, size, cpu);
  }
  int out_of_memory = failed == 4 || (ended == DONE && ended_for_memory(L, first));
  if (!ok) _exit(71); /* out of memory for the answer itself: the host sees the worker end */
  put_header(W.out.data, ended, W.out.size - HEADER);
  begin_sending();
  int apart = kept && ended != VALUE_KEPT;
  ok = flush_locked() && (!apart || send_frame(KEPT, &kept, 1)) && send_all(W.out.data, W.out.size);
  end_sending();
  shrink(&W.out);
  p_lua_settop(L, top);
  if (out_of_memory) p_lua_gc(L, GC_COLLECT);
  if (W.uncollected) collect_after_run(L);
  return ok;
}

/* Serve runs until the host hangs up (0), or a frame comes that Python must answer (1). */
static int serve(int *kind, char **payload, size_t *length) {
  int has_run = 0;
  cpu_since();
  while (receive(kind, payload, length) > 0) {
    if (*kind == INPUTS) {
      p_lua_pushcclosure(W.L, take_inputs, 0);
      if (p_lua_pcallk(W.L, 0, 1, 0, 0, NULL) || p_lua_type(W.L, -1) != T_NIL) _exit(71); /* there is no memory for them */
      pop(W.L, 1);
      restart_gc(W.L);
    } else if (*kind == RUN) {
      if (!run(*payload, *length)) return 0;
      if (!has_run) W.spin.waits = 0; /* many workers run one script and are ended */
      has_run = 1;
    } else if (*kind != ANSWERS && *kind != HALT) { /* those are for a run that has ended */
      return 1;
    }
  }
  return 0;
}

/* ---- For Python ------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  lua_CFunction function;
} FUNCTIONS[] = {{"exchange", l_exchange}, {"cancel", l_cancel}, {"emit", l_emit},     {"reason", l_reason},
                 {"enter", l_enter},       {"leave", l_leave},   {"adopt", l_adopt},   {"encode", l_encode},
                 {"used", l_used},         {"second", l_second}, {"fill", l_fill},     {"ready", l_ready},
                 {"limits", l_limits},     {"bind", l_bind},     {"ask", l_ask},       {"encode_all", l_encode_all},
                 {"quiet", l_quiet},       {"survey", l_survey}, {"encode_result", l_encode_result},
                 {"arrange", l_arrange},   {"next", l_next}};

/* open(library, address): take a Lua state over. Its registry then has a table of our functions, `moonbox.native`. */
static PyObject *py_open(PyObject *module, PyObject *arguments) {
  const char *library;
  unsigned long long address;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "sK", &library, &address)) return NULL;
  if (!handle_stops()) return PyErr_SetFromErrno(PyExc_OSError);
  const char *missing = resolve(library);
  if (missing) return PyErr_Format(PyExc_ImportError, "this build of lupa does not export %s", missing);
  lua_State *L = W.L = (lua_State *)(uintptr_t)address;
  W.used = (size_t)p_lua_gc(L, GC_COUNT) * 1024 + (size_t)p_lua_gc(L, GC_COUNTB);
  p_lua_setallocf(L, allocate, NULL);
  W.running[0] = L;
  W.levels = 1;
  p_lua_createtable(L, 0, 16);
  for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
    p_lua_pushcclosure(L, FUNCTIONS[i].function, 0);
    p_lua_setfield(L, -2, FUNCTIONS[i].name);
  }
  p_lua_setfield(L, REGISTRY, "moonbox.native");
  Py_RETURN_NONE;
}

/* take_hook(): the hook that the prelude has just installed on the main thread, kept for stops. */
static PyObject *py_take_hook(PyObject *module, PyObject *_) {
  (void)module, (void)_;
  W.hook = p_lua_gethook(W.L);
  p_lua_sethook(W.L, NULL, 0, 0);
  Py_RETURN_NONE;
}

/* attach(socket): serve the host on it. */
static PyObject *py_attach(PyObject *module, PyObject *socket) {
  (void)module;
  W.socket = (int)PyLong_AsLong(socket);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

/* serve(): answer frames until the host hangs up (None), or one comes that Python must answer: (kind, payload). */
static PyObject *py_serve(PyObject *module, PyObject *_) {
  int kind;
  char *payload;
  size_t length;
  (void)module, (void)_;
  if (serve(&kind, &payload, &length)) return Py_BuildValue("iy#", kind, payload, (Py_ssize_t)length);
  Py_RETURN_NONE;
}

/* ---- A fresh worker: locked in and at work without a step in Python ------------------------------------------------------ */

enum { MAIN_FD = 3 };

/* One call of a plan of the jail, as jail/native.py writes it: a system call by its number, or one of these. */
enum { PUT_PID = -1, PRCTL = -2, SET_LIMIT = -3, MOST_CALLS = 64 };
typedef struct {
  int64_t kind, words[4];
} JailCall;
static long make_call(const JailCall *call) {
  const int64_t *w = call->words;
  switch (call->kind) {
    case PUT_PID: {
      uint32_t pid = (uint32_t)getpid();
      memcpy((void *)(uintptr_t)w[0], &pid, sizeof pid);
      return 0;
    }
    case PRCTL: return syscall(SYS_prctl, w[0], w[1], 0L, 0L, 0L); /* the C library has prctl in another page than this */
    case SET_LIMIT: {
      struct rlimit limit = {(rlim_t)w[1], (rlim_t)w[2]};
      return setrlimit((int)w[0], &limit);
    }
    default: return syscall((long)call->kind, w[0], w[1], w[2], w[3]);
  }
}

/* Every call of a plan, whether or not others fail; how many did, and what came of them: an errno, the number of a thread below
 * 0, or 0 where it did not fail. */
static int lock_in(const JailCall *calls, size_t count, int *failed) {
  int wrong = 0;
  for (size_t i = 0; i < count; i++) {
    long result = make_call(&calls[i]);
    failed[i] = result == -1 ? errno : (int)-result;
    wrong += failed[i] != 0;
  }
  return wrong;
}

static PyObject *failures_of(const int *failed, size_t count) {
  PyObject *list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject *item = PyLong_FromLong(failed[i]);
    if (!item) Py_CLEAR(list);
    else PyList_SET_ITEM(list, (Py_ssize_t)i, item);
  }
  return list;
}

static void warm_up_worker(void);
static void fill_holes(void);

/* The worker's life, once it is forked and its socket is in place. The calls of the two plans put the jail in force. Returns
 * only when Python has something to do: (None, (kind, payload)) for a frame that it must answer, (failures of both plans, None)
 * where a layer could not be put in force. */
static PyObject *be_worker(long parent, const char *const plans[2], const Py_ssize_t sizes[2], const char *greeting,
                           Py_ssize_t greeting_size) {
  size_t counts[2] = {(size_t)sizes[0] / sizeof(JailCall), (size_t)sizes[1] / sizeof(JailCall)};
  int failures[2][MOST_CALLS];
  if (counts[0] > MOST_CALLS || counts[1] > MOST_CALLS) _exit(70);
  W.builtins_intact = 1; /* as the zygote has left it */
  int wrong = lock_in((const JailCall *)plans[0], counts[0], failures[0]);
  /* The zygote died before PR_SET_PDEATHSIG was set: nothing would ever end this process. */
  if (getppid() != (pid_t)parent) _exit(1);
  W.socket = MAIN_FD;
  wrong += lock_in((const JailCall *)plans[1], counts[1], failures[1]);
  python_is_asleep = 1;
  if (wrong) {
    wake_python();
    PyObject *before = failures_of(failures[0], counts[0]), *after = before ? failures_of(failures[1], counts[1]) : NULL;
    if (!after) _exit(70);
    return Py_BuildValue("((NN)O)", before, after, Py_None);
  }
  warm_up_worker();
  if (!send_frame(READY, greeting, (size_t)greeting_size)) _exit(0);
  int kind;
  char *payload;
  size_t length;
  if (!serve(&kind, &payload, &length)) _exit(0);
  wake_python();
  return Py_BuildValue("(O(iy#))", Py_None, kind, payload, (Py_ssize_t)length);
}

/* The zygote has one thread, so that no lock is held by another: what the C library does about that in the child would copy
 * pages. */
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
#define FORK _Fork
#else
#define FORK fork
#endif

/* fork_worker(socket, parent, before, after, greeting): the process id of a new worker that serves this socket. In the worker it
 * returns what be_worker returns. */
static PyObject *py_fork_worker(PyObject *module, PyObject *arguments) {
  int socket;
  const char *plans[2], *greeting;
  Py_ssize_t sizes[2], greeting_size;
  long parent;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "ily#y#y#", &socket, &parent, &plans[0], &sizes[0], &plans[1], &sizes[1], &greeting,
                        &greeting_size))
    return NULL;
  fill_holes();
  PyOS_BeforeFork();
  pid_t pid = FORK();
  if (!pid) {
    /* At a fixed number, for which its jail is planned. */
    PyObject *state = dup2(socket, MAIN_FD) == MAIN_FD ? be_worker(parent, plans, sizes, greeting, greeting_size) : NULL;
    if (!state) _exit(70);
    return state;
  }
  int problem = errno;
  PyOS_AfterFork_Parent();
  errno = problem;
  return pid < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(pid);
}

/* stop(pid, number, reason): have that worker stop the run of that number. */
static PyObject *py_stop(PyObject *module, PyObject *arguments) {
  unsigned int number, reason;
  int pid;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "iII", &pid, &number, &reason)) return NULL;
  union sigval value = {.sival_ptr = (void *)(uintptr_t)((uint64_t)reason << 32 | number)};
  return sigqueue(pid, STOP_SIGNAL, value) ? PyErr_SetFromErrno(PyExc_OSError) : Py_NewRef(Py_None);
}

static PyObject *py_send(PyObject *module, PyObject *arguments) {
  int kind;
  const char *payload;
  Py_ssize_t size;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "iy#", &kind, &payload, &size)) return NULL;
  begin_sending();
  int ok = flush_locked() && send_frame(kind, payload, (size_t)size);
  end_sending();
  return PyBool_FromLong(ok);
}

/* A run whose answer is not sent. */
static void rehearse(const char *source, size_t size) {
  char frame[HEADER + RUN_HEAD + 512] = {0};
  size += RUN_HEAD;
  put_header(frame, RUN, size);
  memcpy(frame + HEADER + RUN_HEAD, source, size - RUN_HEAD);
  int socket = W.socket;
  W.socket = -1;
  W.in.size = W.in_start = 0;
  if (room_for(&W.in, HEADER + size)) {
    memcpy(W.in.data, frame, HEADER + size);
    W.in.size = W.in_start = HEADER + size;
    run(W.in.data + HEADER, size);
  }
  W.in.size = W.in_start = 0;
  W.socket = socket;
}

static int has_frame(void) {
  char first;
  return W.socket >= 0 && recv(W.socket, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Runs that copy the pages that a script writes to: while nobody waits. In other languages than Lua, the second is one that
 * cannot be compiled. */
static void rehearse_all(void) {
  static const char empty[] = "return 1",
                    usual[] = "local rows, names = {}, {}\n"
                              "for n = 1, 20 do rows[n] = {id = n, name = 'n' .. n} end\n"
                              "for key, value in pairs(rows[1]) do names[#names + 1] = string.format('%s', value) .. key end\n"
                              "table.sort(names)\n"
                              "for _, row in ipairs(rows) do row.id = row.id + 1.5 end\n"
                              "return {rows = rows, names = names}";
  if (!has_frame()) rehearse(empty, sizeof empty - 1);
  if (!has_frame()) rehearse(usual, sizeof usual - 1);
}

/* In a worker. What the rehearsals leave is not collected: the collector writes to every object, and would copy all of Lua's
 * pages. Pages for what the first run allocates are taken too. */
static void warm_up_worker(void) {
  size_t before = W.used;
  rehearse_all();
  W.rehearsed = W.used > before ? W.used - before : 0;
  W.base += W.rehearsed;
  volatile char *room = malloc(NEXT_ROOM);
  for (size_t i = 0; room && i < NEXT_ROOM; i += PAGE) room[i] = 0;
  free((void *)room);
}

/* In the zygote, once: take the free blocks between others. Workers then allocate at the end of the heap, in few pages; each
 * would else copy many that have a little room. */
static void fill_holes(void) {
#ifdef __GLIBC__
  static int filled;
  char *end = filled ? NULL : malloc(LARGEST_HOLE), *block;
  size_t left = MOST_FILLED; /* another allocator may have no end where the largest block is */
  filled = 1;
  for (size_t size = LARGEST_HOLE; end && size >= SMALLEST_HOLE;) {
    do {
      block = malloc(size);
      left = left > size ? left - size : 0;
    } while (left && block && block < end);
    free(block);
    /* the C library keeps a list of its own for each size up to the largest that it caches */
    size = size > 2 * LARGEST_CACHED ? size / 2 : size > LARGEST_CACHED ? LARGEST_CACHED : size - 16;
  }
  free(end);
#endif
}

static PyObject *py_warm_up(PyObject *module, PyObject *_) {
  (void)module, (void)_;
  rehearse_all();
  p_lua_gc(W.L, GC_COLLECT); /* the memory of a script is its own */
  Py_RETURN_NONE;
}

static PyObject *py_used(PyObject *module, PyObject *_) {
  (void)module, (void)_;
  return PyLong_FromSize_t(W.used);
}

static PyObject *py_has_run(PyObject *module, PyObject *_) {
  (void)module, (void)_;
  return PyBool_FromLong(W.has_run);
}

/* lift_limit(): while Python makes Lua values, an error for want of memory would end the process. */
static PyObject *py_lift_limit(PyObject *module, PyObject *_) {
  (void)module, (void)_;
  W.limit = 0;
  Py_RETURN_NONE;
}

static PyObject *py_limit(PyObject *module, PyObject *_) {
  (void)module, (void)_;
  limit_memory(0);
  Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {{"open", py_open, METH_VARARGS, NULL},
                                {"take_hook", py_take_hook, METH_NOARGS, NULL},
                                {"attach", py_attach, METH_O, NULL},
                                {"serve", py_serve, METH_NOARGS, NULL},
                                {"fork_worker", py_fork_worker, METH_VARARGS, NULL},
                                {"stop", py_stop, METH_VARARGS, NULL},
                                {"send", py_send, METH_VARARGS, NULL},
                                {"warm_up", py_warm_up, METH_NOARGS, NULL},
                                {"used", py_used, METH_NOARGS, NULL},
                                {"has_run", py_has_run, METH_NOARGS, NULL},
                                {"lift_limit", py_lift_limit, METH_NOARGS, NULL},
                                {"limit", py_limit, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

/* Raised with every change of what Python calls here; native.py has the same. */
enum { REVISION = 13 };

PyMODINIT_FUNC PyInit__native(void) {
  W.may_spin = spin_is_possible();
  PyObject *module = PyModule_Create(&MODULE);
  if (module && PyModule_AddIntConstant(module, "REVISION", REVISION)) Py_CLEAR(module);
  return module;
}

// The settings of jemalloc, which kilokvd is linked with. jemalloc reads this variable before main().
//
// glibc's allocator keeps freed memory in the arenas of its threads, and gives back only what is at their ends. After a
// peak that is nearly nothing. jemalloc gives back whole pages, wherever they are. It has threads of its own for this,
// so that an idle server does it too.
//
// dirty_decay_ms: pages that were free for so long are given back. Shorter times cost more page faults under load.
// oversize_threshold: 0 turns off the arena for allocations of 8 MiB and more, which gives them back at once. The
// buffers of the log are that large, and are needed again at once.
// lg_extent_max_active_fit: a small allocation may be cut from a free piece of any size. With the default, 6, it may
// not come from one that is more than 64 times as large. Free neighbours become one piece, so that many short calls
// took new pages all the time: 120,000 refused calls took 859 MiB instead of 91.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf =
    "background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:0,oversize_threshold:0,lg_extent_max_active_fit:24";
}

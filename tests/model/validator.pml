/* The ring of the cooperative validator as engine/stm/block_ring.hpp and engine/stm/validator.hpp build it: a front and
 * a back, two read sets in a row through one ring, each of BLOCKS blocks, stale blocks wherever they may be; every
 * interleaving. validator_model_test.py runs it.
 *
 * Checked, when a read set is answered: the lowest stale block is named; each block below it was looked at; both sides
 * looked at one block at most. That no slot is written whose entry is not done, or read when it has another entry. That
 * both sides come to their end, the back by the entry that says so: no state but that end is without a step. Who polls
 * waits here for what it polls for.
 *
 * A step is one access to shared memory; what stands between two of them is local. A block is one check: the order
 * within one is the front's, or the lowest of the back's lanes (the simulator has these).
 *
 * Left out: weak memory (the simulator has it; memory here is that of sequential consistency, and so there are no
 * fences), the front's own smaller blocks, and the slot that is kept for the entry that ends: SLOTS are those of blocks.
 */

#ifndef BLOCKS
#define BLOCKS 4
#endif
#ifndef SLOTS
#define SLOTS 3
#endif
#define SETS 2

/* Bugs, to see them found: PLANT is one of them. */
#define NOTHING 0
#define WRITE_UNDONE 1     /* a slot is written before its last entry is done */
#define GAP_OF_FRONT 2     /* cut falls by one more than the front takes */
#define GAP_OF_BACK 3      /* the back passes over the entry before cut, too */
#define CUT_UNSEEN 4       /* the back does not look at cut */
#define CUT_KEPT 5         /* cut is raised behind the first entry of the next read set */
#define FIND_UNWAITED 6    /* the back's find is read before the back is done */
#define FIND_KEPT 7        /* the back keeps what it found in the read set before */
#define LATER_NAMED 8      /* where the front stops the search, what the back found is named */
#define TAKEN_UNCHECKED 9  /* the front does not look at what it took back */
#define END_UNSEEN 10      /* the back does not see the entry that ends */
#ifndef PLANT
#define PLANT NOTHING
#endif

#define NO_CUT 31
#define NONE 15
#define END 14 /* a block that is none */

/* The four words, and the entries: block, and whether it opens a read set. */
byte tail = 0, cut = NO_CUT, head = 0, found = NONE;
byte entry[SLOTS];
bit opens[SLOTS];
byte owner[SLOTS]; /* ghost: the position whose entry is there */

/* Of the read set at hand. */
byte stale;                      /* a set */
byte by_front = 0, by_back = 0;  /* ghosts: sets of blocks that were looked at */
bit over = 0;                    /* the front is done with it all */

#define HAS(set, i) (((set) >> (i)) & 1)
#define BIT(i) (1 << (i))
#define LOOKED (by_front | by_back)
#define BOTH (by_front & by_back)
#define UP_TO(i) (BIT((i) + 1) - 1)

inline check_answer(answer) {
  d_step {
    if
    :: answer == NONE ->
      assert(stale == 0);                  /* named */
      assert(LOOKED == UP_TO(BLOCKS - 1)); /* looked_at */
    :: else ->
      assert((stale & UP_TO(answer)) == BIT(answer));      /* named */
      assert((LOOKED & UP_TO(answer)) == UP_TO(answer)); /* looked_at */
    fi;
    assert((BOTH & (BOTH - 1)) == 0); /* both_looked */
  }
}

active proctype front() {
  byte sets = 0, from, to, newest, cut_low, seen, answer;
  bit opening;
  do
  :: sets == SETS -> break
  :: else ->
    d_step {
      by_front = 0;
      by_back = 0;
      from = 0;
      to = BLOCKS;
      answer = NONE;
      opening = 1;
      stale = 0;
    }
    /* Which blocks are stale. */
    if :: true :: stale = 1 fi;
    if :: true :: stale = stale | 2 fi;
    if :: true :: stale = stale | 4 fi;
    if :: true :: stale = stale | 8 fi;
#if PLANT != CUT_KEPT
    cut = NO_CUT;
#endif
    cut_low = tail;

    do
    :: from < to -> /* hands a block over where there is room, else takes one of its own */
      seen = head;
      if
#if PLANT == WRITE_UNDONE
      :: tail - seen <= SLOTS ->
#else
      :: tail - seen < SLOTS ->
#endif
        to--;
        d_step {
          assert(head + SLOTS > tail); /* slot_done */
          entry[tail % SLOTS] = to;
          opens[tail % SLOTS] = opening;
          owner[tail % SLOTS] = tail;
        }
        tail++;
        cut_low = tail;
#if PLANT == CUT_KEPT
        if :: opening -> cut = NO_CUT :: else fi;
#endif
        opening = 0
      :: else ->
        by_front = by_front | BIT(from);
        if :: HAS(stale, from) -> answer = from; goto stop :: else fi;
        from++
      fi
    :: else -> /* takes back */
      seen = head;
      if
      :: cut_low <= seen + 1 -> break
      :: else
      fi;
      cut_low--;
#if PLANT == GAP_OF_FRONT
      cut = cut_low - 1;
#else
      cut = cut_low;
#endif
#if PLANT != TAKEN_UNCHECKED
      by_front = by_front | BIT(from);
      if :: HAS(stale, from) -> answer = from; goto stop :: else fi;
#endif
      from++;
      to = from
    od;
#if PLANT != FIND_UNWAITED
    (head == tail);
#endif
    answer = found;
    goto answered;

stop:
    cut = 0;
    (head == tail);
#if PLANT == LATER_NAMED
    if :: found != NONE -> answer = found :: else fi;
#endif
answered:
    check_answer(answer);
    sets++
  od;
  cut = 0;
  d_step {
    assert(head + SLOTS > tail);
    entry[tail % SLOTS] = END;
    opens[tail % SLOTS] = 0;
    owner[tail % SLOTS] = tail;
  }
  tail++;
  over = 1
}

active proctype back() {
  byte at = 0, block, lowest = NONE;
  bit is_first;
  do
  :: (tail > at) ->
    d_step {
      assert(owner[at % SLOTS] == at); /* slot_read */
      block = entry[at % SLOTS];
      is_first = opens[at % SLOTS];
    }
    if
    :: is_first ->
#if PLANT != FIND_KEPT
      lowest = NONE;
#endif
      found = lowest
    :: else
    fi;
    if
#if PLANT != END_UNSEEN
    :: block == END -> break
#else
    :: block == END -> at++; head = at
#endif
#if PLANT == GAP_OF_BACK
    :: block != END && at + 1 >= cut -> at++; head = at
    :: block != END && at + 1 < cut ->
#elif PLANT == CUT_UNSEEN
    :: block != END ->
#else
    :: block != END && at >= cut -> at++; head = at
    :: block != END && at < cut ->
#endif
      assert(owner[at % SLOTS] == at); /* slot_read */
      by_back = by_back | BIT(block);
      if :: HAS(stale, block) && block < lowest -> lowest = block :: else fi;
      found = lowest;
      at++;
      head = at
    fi
  od;
  (over)
}

/* The lock protocol of PR-STM as engine/stm/papers/prstm.hpp builds it: three transactions over two records with a lock
 * each, every interleaving. prstm_model_test.py runs it.
 *
 * Checked, when all have committed: replayed one by one in ticket order the transactions read what they have read and
 * leave what the records hold (serializability in the order that is reported); no lock is held, and each version counts
 * the commits that wrote its record. That all commit: none tries for ever, under weak fairness, or, with LOCKSTEP,
 * where all move in turn, under no assumption. And that the highest priority waits for each lock but a few times: what
 * it has pre-locked or claimed, when it locks everything, nobody locks before it commits but who looked for a claim
 * before that. And that in the end no claim is left.
 *
 * A step is one access to shared memory; what stands between two of them is local. The local part is in the same
 * `atomic` as the step before it, at the end. So it makes no interleavings and no states of its own. A transaction writes
 * its own number, so a value tells who wrote it: where all reads are right, what is computed from them is.
 *
 * Left out: weak memory, several records under one lock, guards and postponement (the simulator has them); wrap of
 * versions and positions (64-bit lock words leave room for them); ranges of tickets. Gaps that failed attempts leave
 * between tickets are closed at once: states that differ by them alone are one.
 *
 * Source: Shen et al., A general purpose contention manager for software transactions on the GPU, Algorithms 1 and 2,
 * with the deviations of engine/stm/papers/prstm.hpp. Progress rests on this, that who locks everything keeps its pre-locks
 * while it waits: with GIVE_BACK a transaction that is refused its second lock pre-locks and frees its first again and
 * again, and a higher priority that has the second one fails to swap the first, each time.
 */

#ifndef ATTEMPTS_OPTIMISTIC
#define ATTEMPTS_OPTIMISTIC 1
#endif

/* Bugs, to see them found: PLANT is one of them. */
#define NOTHING 0
#define READ_UNCHECKED 1     /* docs/papers.md, gap 1: the value is read first and then the version */
#define VALIDATE_FIRST 2     /* docs/papers.md, gap 2: reads are validated before the locks are held, and not again */
#define VALIDATE_NO_MORE 3   /* reads are validated under the locks, but not behind the ticket */
#define VALIDATE_LOCKED 4    /* what another has locked passes: its version is still the old one */
#define TICKET_FIRST 5       /* the ticket is taken before the locks */
#define STEAL_LOCKED 6       /* a lock is stolen from a lower priority that has it locked */
#define STEAL_FROM_HIGHER 7  /* a pre-lock is stolen whatever the priority */
#define RELEASE_STOLEN 8     /* a pre-lock is released by a store, though another may have stolen it */
#define VERSION_KEPT 9       /* what has been written keeps its version */
#define NO_CLAIMS 10         /* what is found locked is not claimed */
#define IGNORE_CLAIMS 11     /* what a higher priority claimed is locked */
#define REPLACE_CLAIMS 12    /* a claim replaces that of a higher priority */
#define KEEP_CLAIMS 13       /* who has what it claimed leaves the claim there */
#define NEVER_PESSIMISTIC 14 /* all attempts are optimistic */
#define GIVE_BACK 15         /* who is refused a lock gives its pre-locks back, though it locks everything */
#ifndef PLANT
#define PLANT NOTHING
#endif

#define TRANSACTIONS 3
#define RECORDS 2

/* A lock word: version, position of the owner (lower: higher priority), state. */
#define FREE 0
#define PRELOCKED 1
#define LOCKED 2
#define WORD(version, owner, state) (((version) << 4) | ((owner) << 2) | (state))
#define VERSION(word) ((word) >> 4)
#define OWNER(word) (((word) >> 2) & 3)
#define STATE(word) ((word) & 3)
#define IS_LOCKED(word) (STATE(word) == LOCKED)

/* A claim: none, or whose it is. */
#define CLAIM(position) ((position) + 1)
#define IS_BEFORE(claimed, position) ((claimed) != 0 && (claimed) < CLAIM(position))

/* The record that is locked i-th: in the order of the records, or in that in which the transaction reads. */
#ifdef UNSORTED
#define IN_ORDER(i) ((i) ^ down)
#define FLIPPED down
#else
#define IN_ORDER(i) (i)
#define FLIPPED 0
#endif

/* Sets are bits. */
#define HAS(set, i) (((set) >> (i)) & 1)
#define BIT(i) (1 << (i))

/* What a transaction does: it reads, in this order, and then writes. */
#define X 1
#define Y 2
#define XY 3
#define YX 4
#define PROGRAM(reads, writes) ((reads) + 5 * (writes))
#define READS(program) ((program) % 5 == YX -> XY : (program) % 5)
#define DOWN(program) ((program) % 5 == YX)
#define WRITES(program) ((program) / 5)

/* Those that every transaction may have, and those that the first may have: sets of programs. */
#ifndef PROGRAMS
#define PROGRAMS BIT(PROGRAM(XY, XY))
#endif
#ifndef PROGRAMS_FIRST
#define PROGRAMS_FIRST PROGRAMS
#endif

byte lock_word[RECORDS];
byte claim[RECORDS];
byte value[RECORDS]; /* the two words of a record */
byte tag[RECORDS];
byte tickets;

/* For the replay. */
byte programs[TRANSACTIONS];
byte ticket[TRANSACTIONS];
byte saw_value[TRANSACTIONS * RECORDS];
byte saw_tag[TRANSACTIONS * RECORDS];
byte committed;

byte wanted; /* what the first transaction has pre-locked, or has claimed, or should have, when it locks everything */

/* Lockstep: all move in turn, in one direction or the other, from places that are up to DELAY_MAX steps apart. */
#ifdef LOCKSTEP
#ifndef DELAY_MAX
#define DELAY_MAX 8
#endif
byte turn;
bool done[TRANSACTIONS];
bool backwards;
#define AFTER(lane) (((lane) + 1 + backwards) % TRANSACTIONS)
inline pass_turn() {
  if
  :: !done[AFTER(me)] -> turn = AFTER(me)
  :: done[AFTER(me)] && !done[AFTER(AFTER(me))] -> turn = AFTER(AFTER(me))
  :: else
  fi
}
#define STEP turn == me -> pass_turn()
#else
#define STEP true
#endif

/* The inlines down to `next_release` are the local parts. Each of them looks for the next step and jumps there. */

inline give_ticket_back() {
  if
  :: ticket[me] != 0 ->
     ticket[0] = ticket[0] - (ticket[0] > ticket[me]);
     ticket[1] = ticket[1] - (ticket[1] > ticket[me]);
     ticket[2] = ticket[2] - (ticket[2] > ticket[me]);
     ticket[me] = 0;
     tickets--
  :: else
  fi
}

inline forget_reads() {
  saw_value[me * RECORDS] = 0;
  saw_value[me * RECORDS + 1] = 0;
  saw_tag[me * RECORDS] = 0;
  saw_tag[me * RECORDS + 1] = 0
}

/* The first i, from the present one on, whose record is in the set; RECORDS if there is none. */
#define SKIP_TO(set, flipped) \
  i = (i == 0 && HAS(set, flipped) -> 0 : (i <= 1 && HAS(set, 1 ^ (flipped)) -> 1 : RECORDS))

inline begin_attempt() {
  optimistic = (attempts < ATTEMPTS_OPTIMISTIC || PLANT == NEVER_PESSIMISTIC);
  need = (optimistic -> writes : reads | writes);
  if
  :: optimistic -> next_read()
  :: else -> begin_locks()
  fi
}

inline next_read() {
  SKIP_TO(reads, down);
  if
  :: i < RECORDS -> record = i ^ down; goto read
  :: else -> i = 0; begin_locks()
  fi
}

inline begin_locks() {
#if PLANT == TICKET_FIRST
  goto take_ticket
#else
  next_prelock()
#endif
}

inline next_prelock() {
  SKIP_TO(need, FLIPPED);
  if
  :: i < RECORDS -> record = IN_ORDER(i); goto prelock
#if PLANT == VALIDATE_FIRST
  :: i == RECORDS && optimistic -> i = 0; next_validation()
#endif
  :: else -> i = 0; next_lock()
  fi
}

inline next_lock() {
  SKIP_TO(need & ~locked, FLIPPED);
  if
  :: i < RECORDS -> record = IN_ORDER(i); goto lock
  :: else -> i = 0; end_locks()
  fi
}

/* Reads that no own lock covers are validated early, so that few tickets are wasted, and then again behind the ticket. */
#define UNCOVERED (optimistic -> reads & ~locked : 0)

inline end_locks() {
#if PLANT == TICKET_FIRST
  next_validation()
#elif PLANT == VALIDATE_FIRST
  goto take_ticket
#else
  SKIP_TO(UNCOVERED, 0);
  if
  :: i < RECORDS -> goto validate
  :: else -> i = 0; goto take_ticket
  fi
#endif
}

inline next_validation() {
  SKIP_TO(UNCOVERED, 0);
  if
  :: i < RECORDS -> goto validate
#if PLANT == VALIDATE_FIRST
  :: else -> i = 0; next_lock()
#else
  :: i == RECORDS && ticket[me] == 0 -> i = 0; goto take_ticket
  :: else -> i = 0; next_locked_read()
#endif
  fi
}

/* Nothing fails from here on. */
inline next_locked_read() {
  if
  :: me == 0 -> wanted = 0
  :: else
  fi;
  SKIP_TO((optimistic -> 0 : reads), 0);
  if
  :: i < RECORDS -> goto read_locked
  :: else -> i = 0; next_write()
  fi
}

inline next_write() {
  SKIP_TO(writes, 0);
  if
  :: i < RECORDS -> goto write
  :: else -> i = 0; next_unlock()
  fi
}

inline next_unlock() {
  SKIP_TO(need, 0);
  if
  :: i < RECORDS -> goto unlock
  :: else ->
     optimistic = false;
     attempts = 0;
     need = 0;
     prelocked = 0;
     locked = 0;
     late = 0;
     i = 0;
     version[0] = 0;
     version[1] = 0;
#ifdef LOCKSTEP
     done[me] = true;
#endif
     committed++;
     goto leave
  fi
}

inline refuse() {
  if
  :: !optimistic && PLANT != GIVE_BACK -> prelocked = 0 /* the locks keep its number: it will find them */
  :: else
  fi;
  fail()
}

inline fail() {
  give_ticket_back();
  word = 0;
  record = 0;
  is_claimed = false;
  late = 0;
  forget_reads();
  i = 0;
  next_release()
}

inline next_release() {
  SKIP_TO(prelocked | locked, 0);
  if
  :: i < RECORDS -> goto release
  :: else ->
     i = 0;
     prelocked = 0;
     locked = 0;
     version[0] = 0;
     version[1] = 0;
     attempts = (attempts < ATTEMPTS_OPTIMISTIC -> attempts + 1 : attempts);
     goto accept_again
  fi
}

inline read_version() {
  if
  :: IS_LOCKED(lock_word[record]) && PLANT != READ_UNCHECKED -> fail()
  :: else -> version[record] = VERSION(lock_word[record])
  fi
}

inline got_prelock() {
  version[record] = VERSION(word);
  prelocked = prelocked | BIT(record);
  late = late & wanted;
  i++
}

inline want() {
  if
  :: me == 0 && !optimistic -> wanted = wanted | BIT(record)
  :: else
  fi
}

#define STEALS_LOCKED(word) (PLANT == STEAL_LOCKED && OWNER(word) > me)

inline got_lock() {
  assert(me == 0 || !HAS(wanted & late, record));
  late = late & ~BIT(record);
  version[record] = VERSION(word);
  locked = locked | BIT(record);
  i++
}

proctype transaction(byte me; byte reads; byte writes; bit down) {
  bool optimistic;
  byte attempts, need, prelocked, locked;
  byte i, record, word;
  bool is_claimed; /* by this one, when it looked */
  byte late; /* what the first transaction wanted already when this one looked for a claim */
  byte version[RECORDS];

#ifdef LOCKSTEP
  do
  :: i < DELAY_MAX -> atomic { STEP; i++ }
  :: break
  od;
  i = 0;
#endif

/* Passed again and again: an error, "acceptance cycle". */
accept_again:
  atomic { begin_attempt() }

read:
#if PLANT != READ_UNCHECKED
  atomic { STEP; read_version() }
#endif
  atomic { STEP; saw_value[me * RECORDS + record] = value[record] }
  atomic {
    STEP;
    saw_tag[me * RECORDS + record] = tag[record];
#if PLANT == READ_UNCHECKED
  }
  atomic {
    STEP;
    read_version();
#endif
    record = 0;
    i++;
    next_read()
  }

prelock:
  atomic {
    STEP;
    word = lock_word[record];
    if
    :: optimistic && HAS(reads, record) && VERSION(word) != version[record] -> skip
    :: IS_LOCKED(word) && !STEALS_LOCKED(word) ->
       if
       :: optimistic || PLANT == NO_CLAIMS -> want()
       :: else -> word = WORD(0, 0, LOCKED); goto look_at_claim
       fi
    :: STATE(word) == PRELOCKED && OWNER(word) == me -> /* kept */
       got_prelock();
       word = 0;
       record = 0;
       next_prelock()
    :: STATE(word) == PRELOCKED && OWNER(word) < me && PLANT != STEAL_FROM_HIGHER -> skip
    :: else -> goto look_at_claim
    fi;
    refuse()
  }
look_at_claim:
  atomic {
    STEP;
    if
    :: IS_LOCKED(word) && !STEALS_LOCKED(word) ->
       if
       :: !IS_BEFORE(claim[record], me) || PLANT == REPLACE_CLAIMS -> claim[record] = CLAIM(me); want()
       :: else
       fi
    :: else ->
       if
       :: IS_BEFORE(claim[record], me) && PLANT != IGNORE_CLAIMS -> skip
       :: else ->
          is_claimed = (claim[record] == CLAIM(me));
          late = late | (me != 0 -> wanted & BIT(record) : 0);
          goto swap
       fi
    fi;
    refuse()
  }
swap:
  atomic {
    STEP;
    if
    :: lock_word[record] == word && optimistic && STATE(word) == FREE -> /* both steps in one */
       lock_word[record] = WORD(VERSION(word), me, LOCKED);
       got_lock()
    :: lock_word[record] == word && (!optimistic || STATE(word) != FREE) &&
          (!IS_LOCKED(word) || STEALS_LOCKED(word)) ->
       lock_word[record] = WORD(VERSION(word), me, PRELOCKED);
       want();
       got_prelock()
    :: else -> /* changed meanwhile: look again */
       late = late & ~BIT(record);
       is_claimed = false
    fi;
    word = 0;
    if
    :: !is_claimed || PLANT == KEEP_CLAIMS -> is_claimed = false; record = 0; next_prelock()
    :: else
    fi
  }
  atomic {
    STEP;
    if
    :: claim[record] == CLAIM(me) -> claim[record] = 0
    :: else
    fi;
    is_claimed = false;
    record = 0;
    next_prelock()
  }

lock:
  atomic {
    STEP;
    if
    :: lock_word[record] == WORD(version[record], me, PRELOCKED) ->
       word = WORD(version[record], me, LOCKED);
       lock_word[record] = word;
       got_lock();
       prelocked = prelocked & ~BIT(record);
       word = 0;
       record = 0;
       next_lock()
    :: else -> fail()
    fi
  }

/* Nobody has locked what was read, and its version is still the same. A pre-lock of another is no conflict yet. */
validate:
  atomic {
    STEP;
    if
    :: VERSION(lock_word[i]) != version[i] || (IS_LOCKED(lock_word[i]) && PLANT != VALIDATE_LOCKED) -> fail()
    :: else -> i++; next_validation()
    fi
  }

take_ticket:
  atomic {
    STEP;
    tickets++;
    ticket[me] = tickets;
#if PLANT == TICKET_FIRST
    next_prelock()
#elif PLANT == VALIDATE_FIRST || PLANT == VALIDATE_NO_MORE
    next_locked_read()
#else
    next_validation()
#endif
  }

read_locked:
  atomic { STEP; saw_value[me * RECORDS + i] = value[i] }
  atomic { STEP; saw_tag[me * RECORDS + i] = tag[i]; i++; next_locked_read() }

write:
  atomic { STEP; value[i] = me + 1 }
  atomic { STEP; tag[i] = me + 1; i++; next_write() }

unlock:
  atomic {
    STEP;
    lock_word[i] = WORD(version[i] + (HAS(writes, i) && PLANT != VERSION_KEPT), 0, FREE);
    i++;
    next_unlock()
  }

release:
  atomic {
    STEP;
    if
    :: HAS(locked, i) || lock_word[i] == WORD(version[i], me, PRELOCKED) || PLANT == RELEASE_STOLEN ->
       lock_word[i] = WORD(version[i], 0, FREE)
    :: else
    fi;
    i++;
    next_release()
  }

leave:
  skip
}

inline replay() {
  atomic {
    byte serial_value[RECORDS];
    byte serial_version[RECORDS];
    byte place = 1;
    byte t, r;
    do
    :: place > TRANSACTIONS -> break
    :: else ->
       t = 0;
       do
       :: ticket[t] == place -> break
       :: else -> t++
       od;
       r = 0;
       do
       :: r == RECORDS -> break
       :: else ->
          assert(!HAS(READS(programs[t]), r) || saw_value[t * RECORDS + r] == serial_value[r]);
          assert(!HAS(READS(programs[t]), r) || saw_tag[t * RECORDS + r] == serial_value[r]);
          r++
       od;
       r = 0;
       do
       :: r == RECORDS -> break
       :: else ->
          if
          :: HAS(WRITES(programs[t]), r) -> serial_value[r] = t + 1; serial_version[r]++
          :: else
          fi;
          r++
       od;
       place++
    od;
    r = 0;
    do
    :: r == RECORDS -> break
    :: else ->
       assert(value[r] == serial_value[r] && tag[r] == serial_value[r]);
       assert(lock_word[r] == WORD(serial_version[r], 0, FREE));
       assert(claim[r] == 0);
       r++
    od
  }
}

inline choose(programs_allowed) {
  chosen = 0;
  do
  :: HAS(programs_allowed, chosen) -> break
  :: (programs_allowed) >> (chosen + 1) != 0 -> chosen++
  od
}

init {
  byte position, chosen;
  atomic {
#ifdef LOCKSTEP
    if
    :: backwards = false
    :: backwards = true
    fi;
#endif
    choose(PROGRAMS_FIRST);
    programs[0] = chosen;
    choose(PROGRAMS);
    programs[1] = chosen;
    choose(PROGRAMS);
    programs[2] = chosen;
    chosen = 0;
    do
    :: position < TRANSACTIONS ->
       run transaction(position, READS(programs[position]), WRITES(programs[position]), DOWN(programs[position]));
       position++
    :: else -> break
    od;
    position = 0
  }
  committed == TRANSACTIONS;
  replay()
}

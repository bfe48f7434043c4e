/* The pages of one decode engine: three of them, two requests at a time, and what may go wrong around them.
 *
 * Requests are named by the row of the page table that they have: A1, then A2 in row A; B1, B2 in row B. Who comes
 * first has row A. At the start all pages hold KV of a user X, who is gone.
 *
 * Two properties, as assertions:
 *   - whenever a decode step reads a page, the page holds KV of the request that reads it (in `read_all`);
 *   - as long as nothing went wrong, no request is refused (in `verify`).
 *
 * Each defence is 1 or 0. `python -m e2e.model` has spin search all interleavings with all of them on, which must find
 * nothing, and with each one off, which must find something. The names are those of the code: see docs/model.md.
 */
#ifndef DEFENCES
#define OWNER 1    /* verified before the first step: each page in the row is held by this request */
#define WRITER 1   /* verified before the first step: each page was written since it was taken */
#define COVERAGE 1 /* verified before the first step: prefill handed over this prompt, and all of it */
#define SCRUB 1    /* pages are zeroed before prefill learns of them; verified: the bytes are those that prefill had */
#define RETIRE 1   /* pages that a transfer may still write into when the time is up are not used again */
#define FRESH 1    /* each request that takes pages draws a new generation; without: the number of its row */
#define WITHHOLD 1 /* a request gives back what it holds, whatever its row names */
#define KEEP 1     /* whoever is given a page that is held has the dummy page in its row instead, and writes there */
#define ORDER 1    /* pages are zeroed and filled only after the forward pass that is under way has written */
#define CLEAR 1    /* a page that is given back has no tags */
#endif
#ifndef FALSE_ALARMS
#define FALSE_ALARMS 1 /* whether to look for them */
#endif
#ifndef ZEROS
#define ZEROS 1 /* whether zeros that are read are a violation: no leak, but no right answer either */
#endif

#ifndef LIVES
#define LIVES 2    /* requests in each row, one after the other; up to 40 */
#endif
#ifndef FAULTS
#define FAULTS 2   /* how many there may be; each kind once */
#endif

#define SHORT 1         /* prefill cut the prompt and sends fewer pages than decode has room for */
#define OTHER 2         /* prefill sends KV of another prompt, of the same length */
#define LOST 4          /* the transfer is complete, it is said, and the bytes of a page never came */
#define OVERWRITTEN 8   /* between hand-over and first step an entry of the page table comes to name a page that is not in its row */
#define GIVEN_TWICE 16  /* the allocator gives out a page that is held */
#define TIMED_OUT 32    /* of an aborted transfer nobody says in time that it writes no more */
#define NOT_RESTORED 64 /* a request that was put aside comes back, and its KV does not */
#define may(fault) (faults_left > 0 && !(faults & fault))

#define X 255 /* the user before */

#define CONFLICT 255 /* owner of a page that was given to two: nobody */
#define DUMMY 0

#define IDLE 0      /* no request in this row */
#define TAKEN 1     /* it has pages, and prefill knows their addresses */
#define SENDING 2   /* prefill's writes may land */
#define HANDED 3    /* the KV is here, it is said; the next thing is the check before the first decode step */
#define RUNNING 4   /* decode steps */
#define DRAINING 5  /* aborted; its pages wait until no write can come any more */
#define PUT_ASIDE 6 /* retracted: its pages are given up, its KV waits in the host's memory */

typedef Row {
  byte stage;
  byte lives;      /* requests so far */
  byte id;         /* of the request: A1 is 1, B1 2, A2 3, B2 4 */
  byte generation;
  byte pages;      /* how many it has */
  byte page[2];    /* the page table */
  byte to[2];      /* addresses that prefill has */
  bool coming[2];  /* whether a write to them has yet to land */
  byte sent;       /* pages that prefill sent */
  byte bytes;      /* whose KV they are */
  bool came        /* over a transfer, not back from the host's memory */
};
Row row[2];

byte holds[4];      /* whose KV is in a page; 0: zeros */
byte owner[4];      /* the tags */
bool written[4];
bool is_free[4];    /* what the allocator believes */
byte free_pages = 3;

byte late_to[2];    /* writes of an aborted transfer of which nobody waits for the end; 0: none */
byte late_bytes;
byte flying_to[2];  /* a request that ended has one more forward pass under way, which writes its last page; 0: none */
byte flying_bytes[2];

byte faults, faults_left = FAULTS;
bool was_put_aside; /* once is enough */

/* Scratch: 0 between steps. */
byte p, e;
bool bad;

#define nothing_flying (!flying_to[0] && !flying_to[1])
#define nothing_coming(r) (!row[r].coming[0] && !row[r].coming[1])

inline fault(which) {
  faults = faults | which;
  faults_left--
}

/* TagTable.take, for one page; entry e of row r names it from now on. */
inline take(r, is_written) {
  if
  :: is_free[1] -> p = 1
  :: is_free[2] -> p = 2
  :: is_free[3] -> p = 3
  :: may(GIVEN_TWICE) && !is_free[1] && owner[1] != row[r].generation -> p = 1; fault(GIVEN_TWICE)
  :: may(GIVEN_TWICE) && !is_free[2] && owner[2] != row[r].generation -> p = 2; fault(GIVEN_TWICE)
  :: may(GIVEN_TWICE) && !is_free[3] && owner[3] != row[r].generation -> p = 3; fault(GIVEN_TWICE)
  fi;
  printf("EVENT take %d %d %d\n", r, p, is_free[p]);
  if
  :: is_free[p] -> is_free[p] = 0; free_pages--
  :: else
  fi;
  if
  :: owner[p] == 0 -> owner[p] = row[r].generation; written[p] = is_written
  :: else -> owner[p] = CONFLICT; written[p] = 0; p = (KEEP -> DUMMY : p)
  fi;
  row[r].page[e] = p;
  p = 0
}

/* All pages that a request gets before it may read: they are taken, and zeroed. */
inline take_all(r) {
  row[r].generation = (FRESH -> row[r].id + (row[r].stage == PUT_ASIDE -> 2 * LIVES : 0) : r + 1);
  for (e : 0 .. row[r].pages - 1) {
    take(r, 0);
    if
    :: SCRUB -> holds[row[r].page[e]] = 0
    :: else
    fi
  }
  e = 0
}

/* TagTable.arrived: the pages up to `count` that this request holds were written. */
inline arrived(r, count) {
  d_step {
    for (e : 0 .. 1) {
      if
      :: e < count && owner[row[r].page[e]] == row[r].generation -> written[row[r].page[e]] = 1
      :: else
      fi
    }
    e = 0
  }
}

inline give_back(q) {
  is_free[q] = 1;
  free_pages++;
  if
  :: CLEAR -> owner[q] = 0; written[q] = 0
  :: else
  fi
}

#define in_row(r, q) (row[r].page[0] == q || (row[r].pages == 2 && row[r].page[1] == q))
#define gives_back(r, q) (WITHHOLD -> owner[q] == row[r].generation : in_row(r, q))

/* release_kv_cache: what is free already is not freed again. */
inline release(r) {
  d_step {
    for (p : 1 .. 3) {
      if
      :: gives_back(r, p) && !is_free[p] -> give_back(p)
      :: else
      fi
    }
    p = 0;
    row[r].page[0] = 0;
    row[r].page[1] = 0
  }
}

/* Nothing is left of the request but what is under way. */
inline leave(r) {
  d_step {
    row[r].stage = IDLE;
    row[r].id = 0;
    row[r].generation = 0;
    row[r].pages = 0;
    row[r].sent = 0;
    row[r].bytes = 0;
    row[r].to[0] = 0;
    row[r].to[1] = 0;
    row[r].coming[0] = 0;
    row[r].coming[1] = 0;
    row[r].came = 0
  }
}

/* The check before the first decode step: TagTable.verdicts, coverage.judge, KvPages.proof. */
inline verify(r) {
  d_step {
    for (e : 0 .. row[r].pages - 1) {
      p = row[r].page[e];
      bad = bad || (OWNER && owner[p] != row[r].generation);
      bad = bad || (WRITER && owner[p] == row[r].generation && !written[p]);
      bad = bad || (SCRUB && row[r].came && (e >= row[r].sent || holds[p] != row[r].bytes))
    }
    bad = bad || (COVERAGE && row[r].came && (row[r].sent != row[r].pages || row[r].bytes != row[r].id));
    p = 0;
    e = 0;
    printf("EVENT verify %d %d\n", r, !bad);
    assert(!(FALSE_ALARMS && bad && !faults))
  }
}

inline fly(r) {
  flying_to[r] = row[r].page[row[r].pages - 1];
  flying_bytes[r] = row[r].id
}

inline read_all(r) {
  d_step {
    for (e : 0 .. row[r].pages - 1) {
      printf("EVENT read %d %d %d\n", r, row[r].page[e], holds[row[r].page[e]]);
      assert(holds[row[r].page[e]] == row[r].id || (!ZEROS && !holds[row[r].page[e]]))
    }
    e = 0
  }
}

proctype Request(byte r) {
  byte n; /* scratch */
end:
  do
  /* Who comes first is A. */
  :: atomic { row[r].stage == IDLE && row[r].lives < LIVES && free_pages > 0 && (r == 0 || row[0].lives > 0) &&
     !(ORDER && !nothing_flying) && !flying_to[r] ->
       row[r].id = 2 * row[r].lives + r + 1;
       row[r].lives++;
       if
       :: row[r].pages = 1
       :: free_pages > 1 -> row[r].pages = 2
       fi;
       printf("EVENT come %d %d\n", r, row[r].pages);
       take_all(r);
       row[r].to[0] = row[r].page[0];
       row[r].to[1] = row[r].page[1];
       printf("EVENT publish %d\n", r);
       row[r].stage = TAKEN }

  /* Prefill. */
  :: atomic { row[r].stage == TAKEN ->
       row[r].sent = row[r].pages;
       row[r].bytes = row[r].id;
       if
       :: true
       :: may(SHORT) -> row[r].sent--; fault(SHORT)
       :: may(OTHER) && row[1 - r].id -> row[r].bytes = row[1 - r].id; fault(OTHER)
       fi;
       row[r].coming[0] = row[r].sent > 0;
       row[r].coming[1] = row[r].sent > 1;
       printf("EVENT send %d %d %d\n", r, row[r].sent, row[r].bytes);
       row[r].stage = SENDING }
  :: atomic { row[r].coming[0] ->
       holds[row[r].to[0]] = row[r].bytes;
       row[r].coming[0] = 0;
       printf("EVENT land %d %d %d %d\n", r, 0, row[r].to[0], row[r].bytes) }
  :: atomic { row[r].coming[1] ->
       holds[row[r].to[1]] = row[r].bytes;
       row[r].coming[1] = 0;
       printf("EVENT land %d %d %d %d\n", r, 1, row[r].to[1], row[r].bytes) }
  :: atomic { row[r].stage == SENDING && may(LOST) && !nothing_coming(r) ->
       fault(LOST);
       if
       :: row[r].coming[0] -> n = 0
       :: row[r].coming[1] -> n = 1
       fi;
       row[r].coming[n] = 0;
       printf("EVENT lose %d %d %d\n", r, n, row[r].to[n]);
       n = 0 }
  :: atomic { row[r].stage == SENDING && nothing_coming(r) ->
       row[r].came = 1;
       arrived(r, row[r].sent);
       printf("EVENT complete %d\n", r);
       row[r].stage = HANDED }

  /* Between hand-over and first step. */
  :: atomic { row[r].stage == HANDED && may(OVERWRITTEN) ->
       fault(OVERWRITTEN);
       if
       :: n = 0
       :: row[r].pages == 2 -> n = 1
       fi;
       if
       :: !in_row(r, 1) -> p = 1
       :: !in_row(r, 2) -> p = 2
       :: !in_row(r, 3) -> p = 3
       fi;
       row[r].page[n] = p;
       printf("EVENT overwrite %d %d %d\n", r, n, p);
       n = 0;
       p = 0 }
  :: atomic { row[r].stage == HANDED ->
       verify(r);
       if
       :: bad -> release(r); leave(r)
       :: else -> row[r].came = 0; row[r].stage = RUNNING
       fi;
       bad = 0 }

  /* Decode. A step comes after the writes of the forward passes before it, in the device's own order. */
  :: atomic { row[r].stage == RUNNING && nothing_flying ->
       printf("EVENT step %d\n", r);
       if
       :: row[r].pages == 1 && free_pages > 0 ->
            e = 1;
            take(r, 1);
            holds[row[r].page[1]] = row[r].id;
            row[r].pages = 2;
            e = 0
       :: true
       fi;
       read_all(r) }
  :: atomic { row[r].stage == RUNNING && !flying_to[r] ->
       fly(r);
       printf("EVENT finish %d\n", r);
       release(r);
       leave(r) }
  :: atomic { row[r].stage == RUNNING && !flying_to[r] && !was_put_aside ->
       was_put_aside = 1;
       fly(r);
       printf("EVENT put_aside %d\n", r);
       release(r);
       row[r].stage = PUT_ASIDE }
  :: atomic { row[r].stage == PUT_ASIDE && free_pages >= row[r].pages && !(ORDER && !nothing_flying) ->
       printf("EVENT return %d\n", r);
       take_all(r);
       if
       :: true ->
            for (e : 0 .. row[r].pages - 1) { holds[row[r].page[e]] = row[r].id }
            arrived(r, row[r].pages);
            printf("EVENT restore %d\n", r)
       :: may(NOT_RESTORED) -> fault(NOT_RESTORED); printf("EVENT not_restore %d\n", r)
       fi;
       e = 0;
       row[r].stage = HANDED }

  /* Aborts. */
  :: atomic { row[r].stage == TAKEN || row[r].stage == HANDED || (row[r].stage == SENDING && nothing_coming(r)) ->
       printf("EVENT abort %d\n", r);
       release(r);
       leave(r) }
  :: atomic { row[r].stage == SENDING && !nothing_coming(r) ->
       printf("EVENT abort %d\n", r);
       row[r].stage = DRAINING }
  :: atomic { row[r].stage == DRAINING && nothing_coming(r) ->
       printf("EVENT drained %d\n", r);
       release(r);
       leave(r) }
  :: atomic { row[r].stage == DRAINING && !nothing_coming(r) && may(TIMED_OUT) ->
       fault(TIMED_OUT);
       late_to[0] = (row[r].coming[0] -> row[r].to[0] : 0);
       late_to[1] = (row[r].coming[1] -> row[r].to[1] : 0);
       late_bytes = row[r].bytes;
       printf("EVENT time_out %d\n", r);
       if
       :: RETIRE -> row[r].page[0] = 0; row[r].page[1] = 0
       :: else -> release(r)
       fi;
       leave(r) }
  od
}

/* What is under way lands when it likes. */
proctype Landing() {
  byte n;
end:
  do
  :: atomic { late_to[0] || late_to[1] ->
       if
       :: late_to[0] -> n = 0
       :: late_to[1] -> n = 1
       fi;
       holds[late_to[n]] = late_bytes;
       printf("EVENT land_late %d %d %d\n", n, late_to[n], late_bytes);
       late_to[n] = 0;
       n = 0 }
  :: atomic { !nothing_flying ->
       if
       :: flying_to[0] -> n = 0
       :: flying_to[1] -> n = 1
       fi;
       holds[flying_to[n]] = flying_bytes[n];
       printf("EVENT fly %d %d\n", flying_to[n], flying_bytes[n]);
       flying_to[n] = 0;
       flying_bytes[n] = 0;
       n = 0 }
  od
}

init {
  atomic {
    holds[1] = X;
    holds[2] = X;
    holds[3] = X;
    is_free[1] = 1;
    is_free[2] = 1;
    is_free[3] = 1;
    run Request(0);
    run Request(1);
    run Landing()
  }
}

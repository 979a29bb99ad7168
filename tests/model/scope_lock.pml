/*
 * scope_lock: a model of one slot: its robust scope mutex, the workers that hold it while they
 * boot, check or close their box, sbxd that recovers it after their death, and the acquires that
 * wait for a box in it. Workers crash or hang, sbxd crashes and is started again, at any step.
 * It stands for shm/scope_lock.c, recover_slot() in supervisor/perform.c, the worker's part in
 * worker/boot.c, box_check.c and box_end.c, and "The scope mutex" in ARCHITECTURE.md.
 *
 * Claims:
 *   - never two holders; a slot whose holder died in the middle is repaired before its mutex is
 *     made consistent, and before anybody uses it again (assertions);
 *   - the mutex is lost, and the slot with it, only when its repair failed (assertions);
 *   - nobody waits for what cannot come (no invalid end state);
 *   - every acquire that waits is answered (ltl answered, under weak fairness). That its connection
 *     ends because sbxd crashed counts as an answer.
 *
 * -DWORKER_CRASHES=n, SBXD_CRASHES, HANGS: how often each happens at most. That is less often than
 * boots are tried again (POOL_BOOT_TRIES), so that limit is left out.
 * -DTWO_SCOPES: the two clients want a box each and meet for the slot; else they share a scope.
 * -DREPAIR_MAY_FAIL: then the slot is quarantined, and whoever waits is refused.
 * -DANY_ORDER: sbxd takes what it is told in any order, not in a fixed one.
 * -DMUTATION_x: the same with one thing wrong, which the checker must find.
 * Run by `make model`.
 */
#ifndef WORKER_CRASHES
#define WORKER_CRASHES 1
#endif
#ifndef SBXD_CRASHES
#define SBXD_CRASHES 1
#endif
#ifndef HANGS
#define HANGS 1
#endif

#ifdef TWO_SCOPES
#define SCOPE(c) (c)
#else
#define SCOPE(c) 0
#endif

mtype = { FREE, BOOTING, ACTIVE, WARM, CHECKING, CLOSING, QUARANTINED }
mtype = { BOOT, CHECK, CLOSE }                          /* orders to a worker */
mtype = { BOOTED, FAILED, CHECKED, HELLO, HELLO_CLOSING } /* what it says */
mtype = { NONE, GRANTED, REFUSED, ENDED }               /* answers to an acquire */

/* Two workers: the boxes that the slot has, in turn. The numbers are process numbers, too. */
#define WORKERS 2
#define CLIENTS 2
#define SBXD 2
#define NOBODY 3
#define FIRST_CLIENT 4 /* by its process number */

/* ---- shared memory ---- */

byte owner = NOBODY; /* of the robust mutex */
bool owner_dead;     /* its last owner died holding it: the next taker gets EOWNERDEAD */
bool inconsistent;   /* that one has it, and has not called pthread_mutex_consistent() yet */
bool unrecoverable;
byte holders;
bool damaged; /* whoever changes the slot is in the middle of it, or died there */
bool repair_failed;

mtype table_state = FREE;
bit table_worker;
bit table_scope;
bool table_pid; /* it shows the worker's pid */
bool table_lease[CLIENTS];

#define lock_is_free (owner == NOBODY && !owner_dead && !unrecoverable)

/* ---- sockets and processes ---- */

bool exists[WORKERS]; /* a process, until its end is over */
bool alive[WORKERS];
bool hung[WORKERS];
bool told[WORKERS];           /* it took its boot order: it may touch the page */
bool linked[WORKERS];         /* its control socket leads to the sbxd that lives */
mtype order[WORKERS] = NONE;  /* what lies in that socket, to the worker: one is enough */
mtype report[WORKERS] = NONE; /* and from it */
bool sbxd_lives = true;
byte deaths; /* of sbxd, so far */
byte hangs;  /* of workers */

bool asked[CLIENTS]; /* its request lies in the socket */
bool waiting[CLIENTS];
bool leaves[CLIENTS]; /* it hung up while it waited */
mtype answer[CLIENTS] = NONE;
bool holds[CLIENTS]; /* a lease */
bool gives_back[CLIENTS];

/* ---- the mutex; each is one step ---- */

inline taken_by(who)
{
	owner = who;
	holders++;
	assert(holders == 1)
}

inline unlock(who)
{
	assert(owner == who);
	owner = NOBODY;
	holders--;
	unrecoverable = inconsistent;
	inconsistent = false;
	assert(!unrecoverable || repair_failed)
}

/* The kernel, for a process that ends. */
inline release_robust(who)
{
	if
	:: owner == who ->
		holders--;
		inconsistent = false;
#ifndef MUTATION_PLAIN_MUTEX
		owner = NOBODY;
		owner_dead = true
#endif
	:: else
	fi
}

/* Killed, or by itself. What it has said can still be read. */
inline end_worker(who)
{
	alive[who] = false;
	hung[who] = false;
	told[who] = false;
	linked[who] = false;
	order[who] = NONE;
	release_robust(who)
}

/* ---- the worker ---- */

/* It never repairs (box_refuse_repair()): the mutex that it refused nobody can have any more. */
inline worker_lock()
{
	if
	:: lock_is_free ->
		taken_by(_pid);
		assert(!damaged);
		damaged = true;
		locked = true
	:: owner != NOBODY -> skip /* until its deadline */
	:: owner == NOBODY && owner_dead ->
		owner_dead = false;
		unrecoverable = true;
		assert(repair_failed)
	:: unrecoverable -> skip
	fi
}

/* The change is whole. */
inline worker_unlock()
{
	damaged = false;
	unlock(_pid);
	locked = false
}

/* What it says to nobody is lost. */
inline say(what)
{
	if
	:: atomic { linked[_pid] && report[_pid] == NONE -> report[_pid] = what }
	:: !linked[_pid] -> skip
	fi
}

/* For ever: until it is killed. */
#define MAY_HANG \
	if \
	:: hangs < HANGS -> \
		hangs++; \
		hung[_pid] = true; \
		false \
	:: true \
	fi

/* Under the lock; without it too, when the grace is over. */
inline close_box()
{
	atomic {
		worker_lock();
		MAY_HANG
	};
	atomic {
		if
		:: locked -> worker_unlock()
		:: else
		fi
	}
}

active [WORKERS] proctype Worker()
{
	bool locked;

end_unborn:
	exists[_pid];
	{
		if
		:: atomic { order[_pid] == BOOT ->
			order[_pid] = NONE;
			told[_pid] = true;
			MAY_HANG }
		:: order[_pid] == NONE && !linked[_pid] -> goto leave
		fi;
		atomic {
			worker_lock();
			MAY_HANG
		};
		if
		:: !locked ->
			say(FAILED);
			goto leave
		:: atomic { locked -> worker_unlock() }
		:: atomic { locked -> worker_unlock() };
			say(FAILED); /* no image, no memory, ... */
			goto leave
		fi;
		say(BOOTED);
end_serving:
		do
		:: atomic { order[_pid] == CHECK ->
			order[_pid] = NONE;
			worker_lock();
			MAY_HANG };
			if
			:: atomic { locked -> worker_unlock() };
				say(CHECKED)
			:: !locked -> say(FAILED)
			fi
		:: atomic { order[_pid] == CLOSE -> MAY_HANG };
			close_box();
			goto leave
		:: atomic { order[_pid] == NONE && !linked[_pid] && sbxd_lives ->
			linked[_pid] = true;
			report[_pid] = HELLO }
		:: order[_pid] == NONE && !linked[_pid] -> /* orphan_grace is over */
			if
			:: atomic { sbxd_lives ->
				linked[_pid] = true;
				report[_pid] = HELLO_CLOSING }
			:: true
			fi;
			close_box();
			goto leave
		od;
leave:
		true;
		d_step {
			end_worker(_pid)
		}
	} unless {
		!alive[_pid]
	};
	atomic {
		locked = false;
		exists[_pid] = false;
		goto end_unborn
	}
}

/* ---- sbxd ---- */

/* Its private mirror, lost with it. */
mtype state = FREE;
bit worker;
bit scope;
bool has_worker;
bool greeted; /* and it can be talked to */
bool lease[CLIENTS];
bool queued[CLIENTS];
bit first;          /* in the queue, as long as anybody is in it */

#define leased (lease[0] || lease[1])
#define wants_it(c) (queued[c] && SCOPE(c) == scope)
#define wants_other(c) (queued[c] && SCOPE(c) != scope)
#define wanted (wants_it(0) || wants_it(1))
#define wanted_elsewhere (wants_other(0) || wants_other(1))

/*
 * sbxd is one atomic sequence. It is interrupted, so that others run, at each POINT: before what
 * others see. (The statement blocks, which is how a sequence is interrupted.) It may crash before
 * each effect, also those that only its successor sees.
 */
bool go_on;
#define POINT go_on = false; go_on; MAY_CRASH
#define MAY_CRASH \
	if \
	:: deaths < SBXD_CRASHES -> goto crashed \
	:: true \
	fi

active proctype Others()
{
end:
	do
	:: atomic { !go_on -> go_on = true }
	od
}

/* publish_box(): one part, whole. */
inline publish()
{
	MAY_CRASH;
	table_state = state;
	table_worker = worker;
	table_scope = scope;
	table_pid = has_worker;
	table_lease[0] = lease[0];
	table_lease[1] = lease[1]
}

inline unqueue(c)
{
	queued[c] = false;
	first = 1 - (c)
}

inline refuse(c)
{
	POINT;
	unqueue(c);
	answer[c] = REFUSED
}

inline refuse_scope()
{
	if
	:: wants_it(0) -> refuse(0)
	:: else
	fi;
	if
	:: wants_it(1) -> refuse(1)
	:: else
	fi
}

/* The table shows the lease before its client knows of it. */
inline grant()
{
	turn = (wants_it(first) -> first : 1 - first);
	state = ACTIVE;
	lease[turn] = true;
	publish();
	POINT;
	unqueue(turn);
	answer[turn] = GRANTED;
	turn = 0
}

/* To a worker that has not said hello yet it is sent when it does. */
inline send(what)
{
	POINT;
	if
	:: greeted && linked[worker] ->
		assert(order[worker] == NONE);
		order[worker] = what
	:: else /* or the worker is gone, and its pidfd will say so */
	fi
}

/* POOL_SPAWN. A worker whose boot order was not sent sees the socket's end and leaves; one that
 * has it is in the table. */
inline boot()
{
	scope = SCOPE(first);
	state = BOOTING;
	worker = 1 - worker;
	publish();
	POINT;
	!exists[worker]; /* that one was never ordered to boot, and is on its way out */
	report[worker] = NONE;
	exists[worker] = true;
	alive[worker] = true;
	linked[worker] = true;
	has_worker = true;
	greeted = true;
#ifdef MUTATION_ORDER_BEFORE_PID
	send(BOOT);
	publish()
#else
	publish();
	send(BOOT)
#endif
}

inline park()
{
	state = WARM;
	publish()
}

/* What follows from the state it is in, as pool_scope_advance() and pool_room_freed() have it. */
inline settle()
{
	do
	:: state == FREE && (queued[0] || queued[1]) -> boot()
	:: state == ACTIVE && wanted -> grant()
	:: state == ACTIVE && !wanted && !leased -> park()
	:: state == WARM && wanted ->
		state = CHECKING;
		send(CHECK);
		publish()
	:: state == WARM && !wanted && wanted_elsewhere ->
		state = CLOSING;
		send(CLOSE);
		publish()
	:: state == QUARANTINED && queued[0] -> refuse(0)
	:: state == QUARANTINED && !queued[0] && queued[1] -> refuse(1)
	:: else -> break
	od
}

/* The box is up. */
inline ready()
{
	if
	:: wanted -> grant()
	:: else -> park()
	fi
}

inline repair()
{
#if defined(MUTATION_NO_REPAIR)
	if
	:: inconsistent
	:: !inconsistent -> damaged = false
	fi
#else
	if
	:: !repair_failed -> damaged = false
#ifdef REPAIR_MAY_FAIL
	:: repair_failed = true
#else
	:: repair_failed
#endif
	fi
#endif
}

/* A slot that was not repaired is never made consistent. */
inline make_consistent()
{
	if
	:: inconsistent && !repair_failed ->
		assert(!damaged);
#ifndef MUTATION_NEVER_CONSISTENT
		inconsistent = false
#endif
	:: else
	fi
}

/* recover_slot(). Its worker is reaped, its box's processes are proven gone. */
inline recover()
{
	POINT;
	if
	:: lock_is_free ->
		taken_by(SBXD);
		assert(!damaged || repair_failed);
		damaged = true
	:: owner == NOBODY && owner_dead ->
		taken_by(SBXD);
		owner_dead = false;
		inconsistent = true
	:: unrecoverable -> assert(repair_failed)
	:: else -> assert(false) /* busy: somebody who lives is in the slot */
	fi;
	if
	:: owner == SBXD ->
		MAY_CRASH;
		repair();
		MAY_CRASH;
		make_consistent();
		POINT;
		unlock(SBXD)
	:: else
	fi
}

inline clean()
{
	has_worker = false;
	lease[0] = false;
	lease[1] = false;
	state = CLOSING;
	publish();
#ifndef MUTATION_NO_RECOVERY
	recover();
#endif
	state = (repair_failed -> QUARANTINED : FREE);
	publish()
}

/* What the table of a dead sbxd says, and which of its workers live. */
inline restore()
{
	state = table_state;
	worker = table_worker;
	scope = table_scope;
	lease[0] = table_lease[0];
	lease[1] = table_lease[1];
	has_worker = table_pid && alive[table_worker];
	greeted = false;
#ifdef MUTATION_NO_RESTORE
	state = FREE;
	has_worker = false;
	lease[0] = false;
	lease[1] = false;
#endif
	if
	:: state == FREE || state == QUARANTINED
	:: else ->
		if
		:: !has_worker -> clean()
		:: has_worker && (state == CHECKING || state == ACTIVE && !leased) -> park()
		:: else
		fi
	fi;
	settle()
}

/* A lease that nobody holds has a time limit, or was tied to the connection. */
#define expired(c) (lease[c] && !holds[c] && answer[c] == NONE && !gives_back[c])
#define client_calls(c) (asked[c] || gives_back[c] || (leaves[c] && queued[c]) || expired(c))

inline on_client(c)
{
	if
	:: asked[c] ->
		asked[c] = false;
		first = (queued[1 - (c)] -> first : c);
		queued[c] = true
	:: !asked[c] && gives_back[c] ->
		lease[c] = false;
		publish();
		gives_back[c] = false
	:: !asked[c] && leaves[c] && queued[c] ->
		unqueue(c);
		leaves[c] = false
	:: !asked[c] && expired(c) ->
		lease[c] = false;
		publish()
	fi
}

inline kill_worker()
{
	POINT;
	if
	:: alive[worker] -> end_worker(worker)
	:: else
	fi
}

inline on_report()
{
	what = report[worker];
	report[worker] = NONE;
	greeted = true;
	if
	:: what == BOOTED && state == BOOTING -> ready()
	:: what == CHECKED && state == CHECKING -> ready()
	:: what == FAILED && state == BOOTING ->
		refuse_scope();
		state = CLOSING;
		publish()
	:: what == FAILED && state == CHECKING -> kill_worker()
	:: what == HELLO && state == BOOTING -> ready()
	:: what == HELLO && state == CHECKING -> send(CHECK)
	:: what == HELLO && state == CLOSING -> send(CLOSE)
	:: what == HELLO_CLOSING ->
		lease[0] = false;
		lease[1] = false;
		state = CLOSING;
		publish()
	:: else
	fi;
	what = NONE
}

#define reported (has_worker && report[worker] != NONE)
#ifdef MUTATION_EARLY_REUSE
#define gone (has_worker && report[worker] == NONE && (!alive[worker] || state == CLOSING))
#else
#define gone (has_worker && report[worker] == NONE && !alive[worker])
#endif
#ifdef MUTATION_NO_DEADLINE
#define overdue false
#else
#define overdue (has_worker && hung[worker] && state != ACTIVE && state != WARM)
#endif

/* For the liveness claim, in this order: else one event could be left for others without end. */
#ifdef ANY_ORDER
#define unless_first(other) true
#else
#define unless_first(other) !(other)
#endif

inline on_event()
{
	if
	:: overdue -> kill_worker()
	:: reported && unless_first(overdue) -> on_report()
	:: gone && unless_first(overdue) ->
		clean();
#ifdef MUTATION_LOST_WAITER
		if
		:: queued[first] -> unqueue(first)
		:: else
		fi
#endif
	:: client_calls(0) && unless_first(overdue || reported || gone) -> on_client(0)
	:: client_calls(1) && unless_first(overdue || reported || gone || client_calls(0)) ->
		on_client(1)
	fi;
	settle()
}

inline connection_ends(c)
{
	if
	:: waiting[c] && answer[c] == NONE ->
		asked[c] = false;
		leaves[c] = false;
		answer[c] = ENDED
	:: else
	fi
}

inline sbxd_dies()
{
	deaths++;
	release_robust(SBXD);
	linked[0] = false;
	linked[1] = false;
	report[0] = NONE;
	report[1] = NONE;
	connection_ends(0);
	connection_ends(1);
	queued[0] = false;
	queued[1] = false;
	what = NONE;
	turn = 0
}

active proctype Sbxd()
{
	mtype what = NONE;
	bit turn;

begin:
	atomic {
		restore();
end_idle:
		do
		:: client_calls(0) || client_calls(1) || reported || gone || overdue -> on_event()
		:: deaths < SBXD_CRASHES -> break
		od;
crashed:
		sbxd_lives = false;
		sbxd_dies();
		go_on = false;
		go_on;
		sbxd_lives = true;
		goto begin
	}
}

/* ---- clients ---- */

active [CLIENTS] proctype Client()
{
	bit me = _pid - FIRST_CLIENT;

end_alone:
	do
	:: me == 1 -> break /* has enough */
	:: atomic { sbxd_lives ->
		waiting[me] = true;
		asked[me] = true };
		if
		:: atomic { answer[me] != NONE ->
			holds[me] = (answer[me] == GRANTED);
			answer[me] = NONE;
			waiting[me] = false }
		:: atomic { me == 1 && queued[me] && answer[me] == NONE -> leaves[me] = true };
			atomic { !leaves[me] || answer[me] != NONE ->
				leaves[me] = false;
				holds[me] = (answer[me] == GRANTED); /* too late */
				answer[me] = NONE;
				waiting[me] = false }
		fi;
		if
		:: atomic { holds[me] ->
			gives_back[me] = true;
			holds[me] = false };
			!gives_back[me]
		:: !holds[me]
		fi
	od
}

/* ---- what goes wrong ---- */

active proctype Fate()
{
	byte crashes;

end_mercy:
	do
	:: atomic { crashes < WORKER_CRASHES && alive[0] ->
		crashes++;
		end_worker(0) }
	:: atomic { crashes < WORKER_CRASHES && alive[1] ->
		crashes++;
		end_worker(1) }
	od
}

ltl answered { [] (waiting[0] -> <> !waiting[0]) }

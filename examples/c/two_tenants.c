/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two tenants read one file through libfairhead, with threads and pread().
 *
 *     client threads ── engine_read() ──► elevator ──► I/O threads ── pread() ──► the file
 *
 * One mutex guards the elevator; I/O threads hold it while they ask for a request and while they report one,
 * not while they read. What a request carries is fixed when it is issued, so the I/O is built then.
 *
 *     cc -O2 -o two_tenants two_tenants.c $(pkg-config --cflags --libs fairhead) -lpthread
 *     ./two_tenants FILE [SECONDS]
 */
#define _GNU_SOURCE
#include <fairhead.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TAGS = 64, IO_THREADS = 2, CLIENTS = 4, PIECE = 4096 };

/* A client's read, under its tag. */
struct read {
	char *buffer;
	off_t offset;
	ssize_t result;
	bool in_use, done;
};

struct engine {
	pthread_mutex_t lock;
	pthread_cond_t work;     /* for I/O threads: something may be there to dispatch */
	pthread_cond_t progress; /* for clients: a read is done, or a tag is free */
	fh_elevator *elevator;
	struct read reads[TAGS];
	int fd;
	bool stop;
};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void must(int32_t answer, const char *what)
{
	if (answer < 0) {
		fprintf(stderr, "%s: %s\n", what, fh_error_text(answer));
		exit(1);
	}
}

/* Reads one piece for a tenant. Blocks until it is done. */
static ssize_t engine_read(struct engine *engine, uint32_t tenant, uint32_t task, char *buffer, off_t offset)
{
	struct fh_request request = {
		.sector = (uint64_t)offset / 512, .sectors = PIECE / 512, .task = task, .group = tenant,
		.op = FH_READ, .prio_class = FH_BEST_EFFORT, .prio_level = 4,
	};
	uint16_t tag = 0;
	pthread_mutex_lock(&engine->lock);
	for (;; pthread_cond_wait(&engine->progress, &engine->lock)) {
		for (tag = 0; tag < TAGS && engine->reads[tag].in_use; tag++)
			;
		if (tag < TAGS)
			break;
	}
	struct read *read = &engine->reads[tag];
	*read = (struct read){ .buffer = buffer, .offset = offset, .in_use = true };
	must(fh_insert(engine->elevator, now_ns(), tag, &request, NULL), "fh_insert");
	pthread_cond_signal(&engine->work);
	while (!read->done)
		pthread_cond_wait(&engine->progress, &engine->lock);
	ssize_t result = read->result;
	read->in_use = false;
	pthread_cond_broadcast(&engine->progress);
	pthread_mutex_unlock(&engine->lock);
	return result;
}

/* Waits for work, or until the elevator's timer. Called with the lock. */
static void wait_for_work(struct engine *engine)
{
	uint64_t when;
	if (fh_next_timer(engine->elevator, &when, NULL) != 1) {
		pthread_cond_wait(&engine->work, &engine->lock);
		return;
	}
	struct timespec until = { (time_t)(when / 1000000000), (long)(when % 1000000000) };
	if (pthread_cond_timedwait(&engine->work, &engine->lock, &until) == ETIMEDOUT)
		must(fh_timer(engine->elevator, now_ns()), "fh_timer");
}

/* The loop of fairhead.h: dispatch while there is room (this thread is the room), else wait. */
static void *io_thread(void *argument)
{
	struct engine *engine = argument;
	pthread_mutex_lock(&engine->lock);
	while (!engine->stop) {
		uint16_t tag, tags[TAGS];
		size_t carried;
		int32_t answer = fh_dispatch(engine->elevator, now_ns(), &tag, NULL);
		must(answer, "fh_dispatch");
		if (answer != FH_ISSUE) {
			wait_for_work(engine);
			continue;
		}
		tags[0] = tag;
		must(fh_carried(engine->elevator, tag, tags + 1, TAGS - 1, &carried), "fh_carried");
		pthread_mutex_unlock(&engine->lock);

		/* A real engine would make one preadv() of these: they touch. */
		for (size_t i = 0; i <= carried; i++) {
			struct read *read = &engine->reads[tags[i]];
			read->result = pread(engine->fd, read->buffer, PIECE, read->offset);
		}

		pthread_mutex_lock(&engine->lock);
		must(fh_complete(engine->elevator, now_ns(), tag, NULL, 0, NULL), "fh_complete");
		for (size_t i = 0; i <= carried; i++)
			engine->reads[tags[i]].done = true;
		pthread_cond_broadcast(&engine->progress);
		pthread_cond_broadcast(&engine->work);
	}
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

/* A thread of a tenant that reads at random places, and compares with what pread() gives directly. */
struct client {
	struct engine *engine;
	uint32_t tenant, task;
	off_t size;
	uint64_t end_ns, reads, wrong;
};

static void *client_thread(void *argument)
{
	struct client *client = argument;
	char buffer[PIECE], direct[PIECE];
	uint64_t chance = client->task * UINT64_C(0x9E3779B97F4A7C15);
	while (now_ns() < client->end_ns) {
		chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407;
		off_t offset = (off_t)(chance >> 20) % (client->size / PIECE) * PIECE;
		ssize_t got = engine_read(client->engine, client->tenant, client->task, buffer, offset);
		client->reads++;
		if (got != pread(client->engine->fd, direct, PIECE, offset) || memcmp(buffer, direct, PIECE))
			client->wrong++;
	}
	return NULL;
}

static void *get_memory(void *context, size_t size, size_t align)
{
	(void)context;
	void *memory;
	return posix_memalign(&memory, align, size) == 0 ? memory : NULL;
}

static void give_memory(void *context, void *memory, size_t size)
{
	(void)context;
	(void)size;
	free(memory);
}

/* An elevator for two tenants: group 1 has three times the weight of group 2. */
static fh_elevator *make_elevator(void)
{
	const struct fh_allocator heap = { get_memory, give_memory, NULL };
	struct fh_limits limits;
	struct fh_error why;
	fh_elevator *elevator;
	must(fh_limits_init(&limits), "fh_limits_init");
	limits.tags = TAGS;
	limits.groups = 3;
	limits.queue_depth = IO_THREADS;
	limits.rotational = 0;
	int32_t made = fh_create_with(&heap, &limits, "bfq", NULL, 0, &elevator, &why);
	if (made != FH_OK) {
		fprintf(stderr, "fh_create_with: %s\n", why.text);
		exit(1);
	}
	must(fh_set_weight(elevator, now_ns(), 1, 300), "fh_set_weight");
	must(fh_set_weight(elevator, now_ns(), 2, 100), "fh_set_weight");
	return elevator;
}

int main(int count, char **arguments)
{
	struct engine engine = { .lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER };
	struct stat stat;
	if (count < 2 || (engine.fd = open(arguments[1], O_RDONLY)) < 0 || fstat(engine.fd, &stat) < 0 ||
	    stat.st_size < PIECE) {
		fprintf(stderr, "usage: two_tenants FILE [SECONDS]; FILE has at least %d bytes\n", PIECE);
		return 2;
	}
	/* The elevator's clock is CLOCK_MONOTONIC, so waits are by that clock, too. */
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&engine.work, &attributes);
	engine.elevator = make_elevator();

	pthread_t io[IO_THREADS], threads[2 * CLIENTS];
	struct client clients[2 * CLIENTS];
	double seconds = count > 2 ? atof(arguments[2]) : 1;
	uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9);
	for (int i = 0; i < IO_THREADS; i++)
		pthread_create(&io[i], NULL, io_thread, &engine);
	for (int i = 0; i < 2 * CLIENTS; i++) {
		clients[i] = (struct client){ &engine, 1 + (uint32_t)i / CLIENTS, 1 + (uint32_t)i, stat.st_size,
			                      end_ns, 0, 0 };
		pthread_create(&threads[i], NULL, client_thread, &clients[i]);
	}
	uint64_t wrong = 0;
	for (int i = 0; i < 2 * CLIENTS; i++) {
		pthread_join(threads[i], NULL);
		wrong += clients[i].wrong;
	}
	pthread_mutex_lock(&engine.lock);
	engine.stop = true;
	pthread_cond_broadcast(&engine.work);
	pthread_mutex_unlock(&engine.lock);
	for (int i = 0; i < IO_THREADS; i++)
		pthread_join(io[i], NULL);

	for (uint32_t tenant = 1; tenant <= 2; tenant++) {
		struct fh_stats stats;
		must(fh_stats(engine.elevator, tenant, &stats), "fh_stats");
		printf("tenant %u: %llu reads, %llu bytes\n", tenant, (unsigned long long)stats.requests.read,
		       (unsigned long long)stats.bytes.read);
	}
	must(fh_check(engine.elevator), "fh_check");
	must(fh_destroy(engine.elevator), "fh_destroy");
	close(engine.fd);
	printf("%llu reads were wrong\n", (unsigned long long)wrong);
	return wrong > 0;
}

/* Tests of shm/segment_check.c, through probe and attach. */
#include <sys/stat.h>

#include "tests/unit/shm/attach_testing.h"

/* Every number of the header that bounds an access, each with wrong values of several kinds. */
static void test_wrong_headers_are_foreign(void **state)
{
	static const struct {
		size_t offset;
		size_t size;
	} fields[] = {
	    {offsetof(struct shm_header, magic), 8},
	    {offsetof(struct shm_header, version), 4},
	    {offsetof(struct shm_header, header_size), 4},
	    {offsetof(struct shm_header, layout_hash), 8},
	    {offsetof(struct shm_header, total_size), 8},
	    {offsetof(struct shm_header, slot_count), 4},
	    {offsetof(struct shm_header, slot_size), 4},
	    {offsetof(struct shm_header, slots_off), 8},
	    {offsetof(struct shm_header, index_buckets), 4},
	    {offsetof(struct shm_header, index_off), 8},
	    {offsetof(struct shm_header, ring_records), 4},
	    {offsetof(struct shm_header, ring_record_size), 4},
	    {offsetof(struct shm_header, ring_off), 8},
	    {offsetof(struct shm_header, owner_uid), 4},
	};
	static const uint64_t wrong[] = {
	    0, 3, UINT64_MAX, UINT64_MAX - 4095, 1ULL << 63, 0x100000000ULL, 12345678};
	static struct shm_header sound;
	int fd;

	die_after(create_and_leave, *state);
	fd = shm_open(*state, O_RDONLY | O_CLOEXEC, 0);
	assert_int_equal(pread(fd, &sound, sizeof(sound), 0), sizeof(sound));
	fd_close(&fd);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const char *was = (const char *)&sound + fields[i].offset;

		for (size_t j = 0; j < sizeof(wrong) / sizeof(wrong[0]); j++) {
			if (!memcmp(was, &wrong[j], fields[i].size))
				continue;
			scribble(*state, fields[i].offset, &wrong[j], fields[i].size);
			assert_foreign(*state, "");
		}
		scribble(*state, fields[i].offset, was, fields[i].size);
	}
	assert_int_equal(segment_probe(*state, NULL), SEGMENT_ORPHANED);
}

static void test_wrong_sizes_are_foreign(void **state)
{
	int fd = -1;
	struct stat st;

	die_after(create_and_leave, *state);
	fd = shm_open(*state, O_RDWR | O_CLOEXEC, 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_size + SHM_PAGE), 0);
	assert_foreign(*state, "expected");
	assert_int_equal(ftruncate(fd, st.st_size - 1), 0);
	assert_foreign(*state, "expected");
	assert_int_equal(ftruncate(fd, (off_t)sizeof(struct shm_header) - 1), 0);
	assert_foreign(*state, "truncated");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_foreign(*state, "truncated");
	fd_close(&fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_wrong_headers_are_foreign),
	    WITH(test_wrong_sizes_are_foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

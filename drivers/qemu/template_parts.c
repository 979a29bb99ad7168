/* template_parts: of what a template is made. Worker and `sbx-worker image`; holds no state. */
#include "drivers/qemu/template_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "drivers/qemu/machine.h"

const char *template_part_name(enum template_part part)
{
	static const char *const names[TEMPLATE_PARTS] = {
	    [PART_FORMAT] = "sbxd",
	    [PART_QEMU] = "QEMU",
	    [PART_KERNEL] = "the kernel",
	    [PART_MODULES] = "the kernel's modules",
	    [PART_CPU] = "the processor model or the accelerator",
	    [PART_HOST] = "the host's processor or kernel",
	    [PART_IMAGE] = "the image",
	    [PART_AGENT] = "sbx-guest or sbx-files",
	};

	return names[part];
}

int template_part_set(uint8_t out[DIGEST_LEN], const void *data, size_t len)
{
	const struct digest_part part = {data, len};

	return digest_sha256(&part, 1, out);
}

/* sbxd may have made a copy in memory: so what is in a program counts. */
static int digest_file(int fd, uint8_t out[DIGEST_LEN])
{
	struct stat st;
	void *data;
	int rc;

	memset(out, 0, DIGEST_LEN);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return 0;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	rc = template_part_set(out, data, (size_t)st.st_size);
	(void)munmap(data, (size_t)st.st_size);
	return rc;
}

int template_part_set_agent(uint8_t out[DIGEST_LEN], int guest, int helper)
{
	uint8_t programs[2][DIGEST_LEN];
	int rc = digest_file(guest, programs[0]);

	if (rc == 0)
		rc = digest_file(helper, programs[1]);
	return rc == 0 ? template_part_set(out, programs, sizeof(programs)) : rc;
}

int template_parts_fill(
    const struct qemu_plan *plan, const struct driver_spec *spec, struct template_parts *out)
{
	struct template_parts p = {
	    .memory_mib = machine_memory_mib(spec),
	    .cpus = machine_cpus(spec),
	};
	int rc;

	memcpy(p.of, plan->parts, sizeof(p.of));
	rc = template_part_set(p.of[PART_IMAGE], plan->disk, strlen(plan->disk));
	if (rc == 0)
		rc = template_part_set_agent(p.of[PART_AGENT], spec->guest, spec->helper);
	if (rc == 0)
		*out = p;
	return rc;
}

int template_parts_digest(const struct template_parts *parts, uint8_t out[DIGEST_LEN])
{
	const uint32_t size[] = {parts->memory_mib, parts->cpus};
	const struct digest_part all[] = {{parts->of, sizeof(parts->of)}, {size, sizeof(size)}};

	return digest_sha256(all, sizeof(all) / sizeof(all[0]), out);
}

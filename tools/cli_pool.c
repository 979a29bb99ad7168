/* cli_pool: sbxctl pool, reset and shutdown. */
#include "tools/cli.h"
#include "tools/cli_show.h"
#include "tools/cli_view.h"

static void put_pool(const json_t *pool)
{
	const json_t *sup = json_object_get(pool, "supervisor");
	char age[16];

	cli_format_age(json_number_value(json_object_get(sup, "uptime_seconds")), age, sizeof(age));
	(void)printf("sbxd       pid %lld, generation %lld, up %s\n", cli_int_at(sup, "pid"),
	    cli_int_at(sup, "generation"), age);
	(void)printf(
	    "driver     %s (%s)\n", cli_text_at(pool, "driver"), cli_text_at(pool, "isolation"));
	(void)printf(
	    "boxes      %lld of %lld replicas (%s): %lld active, %lld warm, %lld booting\n",
	    cli_int_at(pool, "boxes"), cli_int_at(pool, "replicas"),
	    cli_text_at(pool, "replica_policy"), cli_int_at(pool, "active"),
	    cli_int_at(pool, "warm"), cli_int_at(pool, "booting"));
	(void)printf("waiters    %lld\n", cli_int_at(pool, "waiters"));
	cli_put_numbers("states", json_object_get(pool, "states"));
	cli_put_numbers("counters", json_object_get(pool, "counters"));
	cli_put_latencies(json_object_get(pool, "latency"));
}

static int pool_run(struct cli *cli, int argc, char **argv)
{
	int status = cli_parse_all(cli, NULL, argc, argv);
	json_t *pool = NULL;

	if (status != CLI_OK)
		return status;
	status = cli_call(cli, "pool", "GET", "/v1/pool", NULL, CLI_WAIT_S, &pool);
	if (status == CLI_OK && cli->json)
		(void)cli_put_json(pool); /* cli_finish() looks for errors */
	else if (status == CLI_OK)
		put_pool(pool);
	json_decref(pool);
	return cli_finish(status);
}

const struct cli_command cli_pool = {
    .name = "pool",
    .args = "",
    .help = "show counts, counters and latencies",
    .run = pool_run,
};

static int reset_run(struct cli *cli, int argc, char **argv)
{
	int status = cli_parse_all(cli, NULL, argc, argv);
	json_t *answer = NULL;

	if (status != CLI_OK)
		return status;
	status = cli_call(cli, "reset", "POST", "/v1/pool/reset", NULL, CLI_WAIT_S, &answer);
	if (status == CLI_OK && cli->json)
		(void)cli_put_json(answer); /* cli_finish() looks for errors */
	else if (status == CLI_OK)
		(void)printf("%lld parked\n", cli_int_at(answer, "parked"));
	json_decref(answer);
	return cli_finish(status);
}

const struct cli_command cli_reset = {
    .name = "reset",
    .args = "",
    .help = "take back every box that is in use: they stay warm",
    .run = reset_run,
};

static int shutdown_run(struct cli *cli, int argc, char **argv)
{
	int status = cli_parse_all(cli, NULL, argc, argv);
	json_t *answer = NULL;

	if (status != CLI_OK)
		return status;
	status = cli_call(cli, "shutdown", "POST", "/v1/shutdown", NULL, CLI_WAIT_S, &answer);
	if (status == CLI_OK && cli->json)
		(void)cli_put_json(answer);
	json_decref(answer);
	return cli_finish(status);
}

const struct cli_command cli_shutdown = {
    .name = "shutdown",
    .args = "",
    .help = "close every box and end sbxd",
    .run = shutdown_run,
};

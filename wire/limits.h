/*
 * limits: what clients may use of the service where the configuration says nothing else (its
 * section `limits`). Plain numbers: they are also the texts of the defaults. sbxd keeps those of
 * its own connections and requests; those of a box travel to its worker in struct ctl_limits.
 */
#ifndef SBXD_WIRE_LIMITS_H
#define SBXD_WIRE_LIMITS_H

/* Of sbxd and of workers. */
#define LIMIT_HEAD_BYTES 16384 /* request line and headers */
#define LIMIT_JSON_DEPTH 32
#define LIMIT_IDLE_SECONDS 3600 /* of a connection between two requests */

/* Of sbxd. */
#define LIMIT_BODY_BYTES 65536 /* of a request that sbxd itself answers */
#define LIMIT_CONNECTIONS 0    /* as many as there are descriptors for */
#define LIMIT_TCP_CONNECTIONS 1024
#define LIMIT_EVENT_STREAMS 32 /* of one uid, at a time */

/* Of a worker. */
#define LIMIT_BOX_CONNECTIONS 256 /* in the worker's hands */
#define LIMIT_RUN_BODY_BYTES 33554432
#define LIMIT_EXEC_BODY_BYTES 8388608 /* twice what the guest takes of a command */
#define LIMIT_RUN_OUTPUT_BYTES \
	67108864		    /* kept of each of stdout and stderr, as a request may ask */
#define LIMIT_FILE_BYTES 1073741824 /* of one file, up or down */
#define LIMIT_BOX_EXECUTIONS 64	    /* at once, of one box */
#define LIMIT_EXECUTION_SECONDS 300 /* without a client; kept after the end */
#define LIMIT_STALL_SECONDS 120	    /* of an operation that is no command, in the guest */

#define LIMIT_COMMAND_SECONDS 1000000000 /* that one may be given */

/* What the worker of a test, or of nobody's configuration, is told. */
#define CTL_LIMITS_DEFAULT                                                                        \
	{                                                                                         \
		.head_bytes = LIMIT_HEAD_BYTES, .json_depth = LIMIT_JSON_DEPTH,                   \
		.connections = LIMIT_BOX_CONNECTIONS, .idle_ms = LIMIT_IDLE_SECONDS * 1000U,      \
		.run_output_bytes = LIMIT_RUN_OUTPUT_BYTES,                                       \
		.run_body_bytes = LIMIT_RUN_BODY_BYTES, .exec_body_bytes = LIMIT_EXEC_BODY_BYTES, \
		.file_bytes = LIMIT_FILE_BYTES, .max_executions = LIMIT_BOX_EXECUTIONS,           \
		.exec_detach_grace_ms = LIMIT_EXECUTION_SECONDS * 1000U,                          \
		.exec_keep_ms = LIMIT_EXECUTION_SECONDS * 1000U,                                  \
		.op_stall_ms = LIMIT_STALL_SECONDS * 1000U,                                       \
	}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for people and for machines. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "sandbox/plan.h"

static const char *const kind_names[] = {
	[MOUNT_RW] = "rw",          [MOUNT_RO] = "ro",          [MOUNT_PIN] = "pin",
	[MOUNT_HIDE_DIR] = "hide",  [MOUNT_HIDE_FILE] = "hide", [MOUNT_PRIVATE] = "private",
	[MOUNT_FOLDER] = "private", [MOUNT_TEXT] = "text",      [MOUNT_DEV] = "dev",
	[MOUNT_PROC] = "proc",
};
_Static_assert(ARRAY_LEN(kind_names) == MOUNT_KIND_MAX_, "a name for each kind");

static void print_ports(const struct plan *plan, struct buf *out)
{
	for (size_t i = 0; i < plan->n_publish; i++)
		buf_printf(out,
			   "published   127.0.0.1:%u and [::1]:%u of the host: port %u inside\n",
			   plan->publish[i].host, plan->publish[i].host, plan->publish[i].inside);
	for (size_t i = 0; i < plan->n_host_ports; i++)
		buf_printf(out, "host port   127.0.0.1:%u inside: the same of the host\n",
			   plan->host_ports[i]);
	if (plan->http_proxy)
		buf_printf(out, "HTTP proxy  127.0.0.1:%u of the host, which decides itself\n",
			   plan->http_proxy);
	if (plan->socks_proxy)
		buf_printf(out, "SOCKS proxy 127.0.0.1:%u of the host, which decides itself\n",
			   plan->socks_proxy);
}

/* One line each. */
static void print_paths(const char *label, const char *const *v, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "%-10s  ", label);
		text_append_safe(out, v[i]);
		buf_putc(out, '\n');
	}
}

static void print_grants(const struct plan *plan, struct buf *out)
{
	buf_printf(out, "landlock    ABI %d, nothing but:\n", plan->landlock_abi);
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];

		buf_printf(out, "  %-8s  ",
			   g->rights & GRANT_WRITE    ? "write"
			   : g->rights & GRANT_DEVICE ? "device"
			   : g->rights & GRANT_LIST   ? "list"
						      : "read");
		text_append_safe(out, g->path);
		buf_putc(out, '\n');
	}
}

static void print_held(const struct plan *plan, struct buf *out)
{
	for (size_t i = 0; i < plan->n_held; i++) {
		const struct held_path *held = &plan->held[i];

		buf_puts(out, "held        ");
		text_append_safe(out, held->path);
		buf_puts(out, held->why ? "  — " : "  — protected name ");
		text_append_safe(out, held->why ? held->why : held->name->pattern);
		buf_puts(out, held->why ? "\n" : " leads here\n");
	}
}

static void print_landlock(const struct plan *plan, struct buf *out)
{
	if (plan->contained && plan->engine->landlock) {
		buf_puts(out, "landlock    nothing outside the container is opened for writing\n");
		return;
	}
	if (!plan->landlock) {
		buf_puts(out, "landlock    not available on this kernel\n");
		return;
	}
	if (plan->bare) {
		print_grants(plan, out);
	} else {
		buf_puts(out, "landlock    writes only below:");
		for (size_t i = 0; i < plan->n_writable; i++) {
			buf_putc(out, ' ');
			text_append_safe(out, plan->writable[i]);
		}
		buf_putc(out, '\n');
	}
	print_paths("guarded", plan->guarded, plan->n_guarded, out);
	print_held(plan, out);
	print_paths("relayed", plan->relayed, plan->n_relayed, out);
	print_paths("bulk", plan->bulk, plan->n_bulk, out);
	if (plan->direct)
		buf_puts(out, "direct      files are made there by ambit-direct.so (LD_PRELOAD), "
			      "unasked\n");
}

static const char *network_text(const struct plan *plan)
{
	if (plan->egress)
		return "allowed domains only, through ambit-proxy";
	if (!plan->new_net)
		return "the host's";
	if (plan->bare)
		return "none (no connection and no server but by unix sockets)";
	return plan->loopback ? "none (own loopback)" : "none (loopback down)";
}

/* Said where it is not as usual: own sockets only, and servers on the own loopback. */
static void print_sockets(const struct plan *plan, struct buf *out)
{
	if (plan->all_unix)
		buf_puts(out, "unix        all sockets that are visible\n");
	for (size_t i = 0; !plan->all_unix && i < plan->unix_sockets->n; i++) {
		buf_puts(out, "unix        ");
		text_append_safe(out, plan->unix_sockets->v[i].text);
		buf_putc(out, '\n');
	}
	if (plan->no_listen)
		buf_puts(out, "listening   refused, but for unix sockets\n");
}

/* A word a line, as a shell would want it. */
static void print_engine(const struct plan *plan, struct buf *out)
{
	if (!plan->engine)
		return;
	buf_puts(out, "engine      called with:\n");
	for (size_t i = 0; i < plan->engine->n_argv; i++) {
		_cleanup_buf_ struct buf word = BUF_INIT(BUF_MAX_TEXT);

		text_append_shell(&word, plan->engine->argv[i]);
		buf_puts(out, "  ");
		text_append_safe(out, buf_str(&word));
		buf_putc(out, '\n');
	}
}

/* Its arguments, an option on each line. */
static void print_bwrap(const struct plan *plan, struct buf *out)
{
	if (plan->n_bwrap)
		buf_puts(out, "bwrap");
	for (size_t i = 0; i < plan->n_bwrap; i++) {
		buf_puts(out, strncmp(plan->bwrap[i], "--", 2) == 0 ? "\n  " : " ");
		text_append_safe(out, plan->bwrap[i]);
	}
	if (plan->n_bwrap)
		buf_puts(out, "\n  -- ambit-init\n");
}

void plan_print(const struct plan *plan, struct buf *out)
{
	if (plan->bare)
		buf_puts(out, "namespaces  none (backend landlock)\n");
	else if (plan->contained)
		buf_printf(out, "namespaces  of a container (backend %s)\n", plan->engine->name);
	else
		buf_printf(out, "namespaces  user mount pid ipc uts cgroup%s%s\n",
			   plan->new_net ? " net" : "",
			   plan->backend == BACKEND_BWRAP ? " (by bwrap)" : "");
	buf_printf(out, "network     %s\n", network_text(plan));
	print_ports(plan, out);
	print_sockets(plan, out);
	buf_printf(out, "ids         uid %u, gid %u, no capabilities, no_new_privs\n", plan->uid,
		   plan->gid);
	buf_printf(out, "directory   ");
	text_append_safe(out, plan->cwd);
	buf_printf(out, "\nfiles       / %s\n",
		   plan->contained       ? "of the image, read-only"
		   : plan->root_writable ? "writable"
					 : "read-only");
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct mount_step *m = &plan->mounts[i];

		buf_printf(out, "  %-8s  ", kind_names[m->kind]);
		text_append_safe(out, m->path);
		buf_puts(out, "  — ");
		text_append_safe(out, m->why);
		buf_putc(out, '\n');
	}
	print_landlock(plan, out);
	buf_puts(out, "seccomp     allow-list; no namespaces, mounts, io_uring, odd sockets\n");
	buf_puts(out, "environment");
	for (char **v = plan->env; *v; v++) {
		buf_putc(out, ' ');
		text_append_safe_n(out, *v, strcspn(*v, "="));
	}
	buf_putc(out, '\n');
	print_engine(plan, out);
	print_bwrap(plan, out);
	for (size_t i = 0; i < plan->notes.n; i++) {
		buf_puts(out, "note        ");
		text_append_safe(out, plan->notes.v[i].text);
		buf_putc(out, '\n');
	}
}

static void print_step(struct json *j, const struct mount_step *m)
{
	json_begin_object(j);
	json_kstring(j, "kind", kind_names[m->kind]);
	json_kstring(j, "path", m->path);
	json_kstring(j, "type", m->directory ? "directory" : "file");
	if (m->make_point)
		json_kbool(j, "makePoint", true);
	json_kstring(j, "why", m->why);
	json_end_object(j);
}

static void print_ports_json(struct json *j, const struct plan *plan)
{
	json_key(j, "publish");
	json_begin_array(j);
	for (size_t i = 0; i < plan->n_publish; i++) {
		json_begin_object(j);
		json_kint(j, "host", plan->publish[i].host);
		json_kint(j, "inside", plan->publish[i].inside);
		json_end_object(j);
	}
	json_end_array(j);
	json_key(j, "hostPorts");
	json_begin_array(j);
	for (size_t i = 0; i < plan->n_host_ports; i++)
		json_int(j, plan->host_ports[i]);
	json_end_array(j);
	if (plan->http_proxy)
		json_kint(j, "httpProxyPort", plan->http_proxy);
	if (plan->socks_proxy)
		json_kint(j, "socksProxyPort", plan->socks_proxy);
}

void plan_print_json(const struct plan *plan, struct buf *out)
{
	struct json j = { .out = out, .indent = 2 };

	json_begin_object(&j);
	json_kint(&j, "uid", plan->uid);
	json_kint(&j, "gid", plan->gid);
	json_kbool(&j, "ownNetwork", plan->new_net);
	json_kbool(&j, "loopback", plan->loopback);
	json_kbool(&j, "egress", plan->egress);
	print_ports_json(&j, plan);
	json_kbool(&j, "listening", !plan->no_listen);
	json_kbool(&j, "allUnixSockets", plan->all_unix);
	json_key(&j, "unixSockets");
	json_begin_array(&j);
	for (size_t i = 0; i < plan->unix_sockets->n; i++)
		json_string(&j, plan->unix_sockets->v[i].text);
	json_end_array(&j);
	json_kbool(&j, "landlock", plan->landlock);
	json_kbool(&j, "namespaces", !plan->bare);
	json_kstring(&j, "directory", plan->cwd);
	json_kbool(&j, "rootWritable", plan->root_writable);
	json_key(&j, "mounts");
	json_begin_array(&j);
	for (size_t i = 0; i < plan->n_mounts; i++)
		print_step(&j, &plan->mounts[i]);
	json_end_array(&j);
	json_key(&j, "writable");
	json_begin_array(&j);
	for (size_t i = 0; i < plan->n_writable; i++)
		json_string(&j, plan->writable[i]);
	json_end_array(&j);
	if (plan->n_bwrap) {
		json_key(&j, "bwrap");
		json_begin_array(&j);
		for (size_t i = 0; i < plan->n_bwrap; i++)
			json_string(&j, plan->bwrap[i]);
		json_end_array(&j);
	}
	json_key(&j, "environment");
	json_begin_array(&j);
	for (char **v = plan->env; *v; v++)
		json_string(&j, *v);
	json_end_array(&j);
	if (plan->engine) {
		json_key(&j, "engine");
		json_begin_array(&j);
		for (size_t i = 0; i < plan->engine->n_argv; i++)
			json_string(&j, plan->engine->argv[i]);
		json_end_array(&j);
	}
	json_key(&j, "notes");
	json_begin_array(&j);
	for (size_t i = 0; i < plan->notes.n; i++)
		json_string(&j, plan->notes.v[i].text);
	json_end_array(&j);
	json_end_object(&j);
	buf_putc(out, '\n');
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of settings, and what can be said about it without a policy. Rows of
 * one object stand together: settings_walk() relies on it (tests check).
 */
#include "policy/schema.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/build.h"
#include "policy/container.h"
#include "policy/excluded.h"
#include "policy/policy.h"

#define AT(field) offsetof(struct policy, field)
#define KEY_DEPTH_MAX 4

static const char *const words_network[] = { "", "none", "allowlist", "host", NULL };
static const char *const words_protect[] = { "everywhere", "anchors", NULL };
static const char *const words_tmp[] = { "private", "host", "shared", NULL };
static const char *const words_home[] = { "real", "private", NULL };
static const char *const words_inherit[] = { "none", "safe", "all", NULL };
static const char *const words_backend[] = { "auto",   "native", "bwrap", "landlock", "seatbelt",
					     "podman", "docker", "none",  NULL };
static const char *const words_log_format[] = { "auto", "text", "jsonl", NULL };
/* What backends can be asked for: backend.h, struct property. */
static const char *const words_require[] = {
	"user-namespaces", "files", "attributes", "hidden",       "processes", "devices", "network",
	"egress",          "ipc",   "landlock",   "signal-scope", "seccomp",   "names",   NULL
};
static const char *const words_fallback[] = { "enforce", "warn", NULL };

static int check_address(const char *text, struct error *e)
{
	struct host_rule rule;
	int r = host_rule_parse(text, false, &rule, e);

	if (r < 0)
		return r;
	if (rule.port || rule.type == HOST_RULE_SUBDOMAINS || rule.host.kind == HOST_NAME)
		return error_set(e, EINVAL, "\"%s\" is not an address or network", text);
	return 0;
}

static int check_variable(const char *text, struct error *e)
{
	for (const char *c = text; *c; c++) {
		if (*c == '=' || *c == ' ')
			return error_set(e, EINVAL, "\"%s\" is not the name of a variable", text);
	}
	return 0;
}

static int check_log_path(const char *text, struct error *e)
{
	if (strcmp(text, "none") == 0 || *text == '/' || text_starts(text, "~/"))
		return 0;
	return error_set(e, EINVAL, "\"%s\" must begin with / or ~/, or be none", text);
}

static int check_directory_name(const char *text, struct error *e)
{
	if (*text == '/' || strcmp(text, ".") == 0 || strstr(text, ".."))
		return error_set(e, EINVAL, "\"%s\" must be a name below the project", text);
	return 0;
}

const struct setting settings_table[] = {
	/* clang-format off */
	{ "$schema", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "for editors" },

	{ "network.mode", SETTING_ENUM, WIDEN_HIGHER, AT(network.mode), words_network,
	  .help = "none, allowlist or host; without it: allowlist when a domain is allowed, else none" },
	{ "network.allowedDomains", SETTING_HOSTS, WIDEN_ADDING, AT(network.allowed),
	  .variant = HOSTS_ALLOWED,
	  .live = true, .help = "hosts that may be reached: host, *.host, address, network, each with optional :port" },
	{ "network.deniedDomains", SETTING_HOSTS, WIDEN_NEVER, AT(network.denied),
	  .variant = HOSTS_DENIED, .live = true, .help = "hosts that are refused although allowed; also \"*\"" },
	{ "network.deniedDomainReasons", SETTING_REASONS, WIDEN_NEUTRAL, AT(network.denied_reasons),
	  .live = true, .help = "text shown when an entry of deniedDomains refuses" },
	{ "network.deniedResolvedAddresses", SETTING_STRINGS, WIDEN_NEVER, AT(network.denied_resolved),
	  .check = check_address, .live = true, .help = "addresses and networks that no allowed name may resolve to" },
	{ "network.strictAllowlist", SETTING_BOOL, WIDEN_LOWER, AT(network.strict_allowlist),
	  .live = true, .help = "refuse hosts that are not listed without asking" },
	{ "network.requireSNI", SETTING_BOOL, WIDEN_LOWER, AT(network.require_sni), .def = "true",
	  .help = "refuse connections to the usual TLS ports that do not name the allowed host" },
	{ "network.allowECH", SETTING_BOOL, WIDEN_HIGHER, AT(network.allow_ech), .def = "true",
	  .help = "accept TLS hellos with an encrypted part beside the allowed name (many send one for show)" },
	{ "network.allowUnixSockets", SETTING_SOCKETS, WIDEN_ADDING, AT(network.unix_sockets),
	  .help = "unix sockets that may be connected to" },
	{ "network.allowAllUnixSockets", SETTING_BOOL, WIDEN_HIGHER, AT(network.allow_all_unix_sockets),
	  .help = "let every visible unix socket be connected to" },
	{ "network.allowLocalBinding", SETTING_BOOL, WIDEN_HIGHER, AT(network.allow_local_binding),
	  .def = "true", .help = "let the command listen on the sandbox's own loopback" },
	{ "network.allowPrivateAddresses", SETTING_BOOL, WIDEN_HIGHER, AT(network.allow_private_addresses),
	  .help = "let allowed names resolve to private addresses" },
	{ "network.publish", SETTING_PORTS, WIDEN_ADDING, AT(network.publish),
	  .variant = PORTS_MAPPED,
	  .help = "ports of the sandbox reachable on the host's loopback: PORT or \"HOSTPORT:PORT\"" },
	{ "network.allowHostPorts", SETTING_PORTS, WIDEN_ADDING, AT(network.host_ports),
	  .help = "ports on the host's 127.0.0.1 reachable from inside" },
	{ "network.httpProxyPort", SETTING_PORT, WIDEN_ALWAYS, AT(network.http_proxy_port),
	  .help = "port 3128 inside leads to this port of the host, unfiltered (0 = to our own proxy)" },
	{ "network.socksProxyPort", SETTING_PORT, WIDEN_ALWAYS, AT(network.socks_proxy_port),
	  .help = "port 1080 inside leads to this port of the host, unfiltered (0 = to our own proxy)" },
	{ "network.parentProxy.http", SETTING_STRING, WIDEN_ALWAYS, AT(network.parent_http),
	  .check = network_check_proxy_url, .help = "proxy through which plain HTTP leaves (default: http_proxy)" },
	{ "network.parentProxy.https", SETTING_STRING, WIDEN_ALWAYS, AT(network.parent_https),
	  .check = network_check_proxy_url, .help = "proxy through which everything else leaves (default: https_proxy, then the other)" },
	{ "network.parentProxy.noProxy", SETTING_STRING, WIDEN_ALWAYS, AT(network.parent_no_proxy),
	  .check = network_check_no_proxy, .help = "hosts reached without the parent proxy, comma-separated (default: no_proxy)" },
	{ "network.tlsTerminate", SETTING_REFUSED, WIDEN_NEUTRAL, 0, .variant = REFUSED_WHEN_THERE,
	  .help = "TLS is not opened by this sandbox" },
	{ "network.mitmProxy", SETTING_REFUSED, WIDEN_NEUTRAL, 0,
	  .help = "there is no hand-over to an inspecting proxy; see network.httpProxyPort" },
	{ "network.refuseOpaqueTunnels", SETTING_REFUSED, WIDEN_NEUTRAL, 0,
	  .help = "TLS is not opened by this sandbox, so every tunnel would be refused" },
	{ "network.requireHostMatch", SETTING_REFUSED, WIDEN_NEUTRAL, 0,
	  .help = "requests inside TLS cannot be compared with the target" },
	{ "network.stripResponseHeaders", SETTING_REFUSED, WIDEN_NEUTRAL, 0,
	  .help = "responses are passed on unchanged" },
	{ "network.allowPlaintextHeaderSet", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0,
	  .help = "only means something to a library's own request filter" },
	{ "network.ambiguousRequestTarget", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0,
	  .help = "only means something to a library's own request filter" },
	{ "network.allowMachLookup", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "macOS only" },

	{ "filesystem.denyRead", SETTING_PATHS, WIDEN_NEVER, AT(fs.rules),
	  .variant = PATHS_VARIANT(ACCESS_READ, VERDICT_DENY), .help = "paths that cannot be seen" },
	{ "filesystem.allowRead", SETTING_PATHS, WIDEN_ADDING, AT(fs.rules),
	  .variant = PATHS_VARIANT(ACCESS_READ, VERDICT_ALLOW), .help = "exceptions inside denyRead" },
	{ "filesystem.allowWrite", SETTING_PATHS, WIDEN_ADDING, AT(fs.rules),
	  .variant = PATHS_VARIANT(ACCESS_WRITE, VERDICT_ALLOW), .help = "paths that may be changed" },
	{ "filesystem.denyWrite", SETTING_PATHS, WIDEN_NEVER, AT(fs.rules),
	  .variant = PATHS_VARIANT(ACCESS_WRITE, VERDICT_DENY),
	  .help = "paths that may not be changed, also inside allowWrite" },
	{ "filesystem.protect", SETTING_ENUM, WIDEN_HIGHER, AT(fs.protect), words_protect, "everywhere",
	  .help = "guard protected names at any depth, or only where they exist at start" },
	{ "filesystem.protectNames", SETTING_NAMES, WIDEN_NEVER, AT(fs.protected), .variant = NAMES_ADD,
	  .help = "further names that must not be created or changed (\".husky\", \".git/info/*\")" },
	{ "filesystem.unprotect", SETTING_NAMES, WIDEN_ADDING, AT(fs.protected), .variant = NAMES_LIFT,
	  .help = "built-in protected names to lift (\".vscode\")" },
	{ "filesystem.bulk", SETTING_STRINGS, WIDEN_ADDING, AT(fs.bulk), .check = check_directory_name,
	  .help = "directories with many generated files, where names are not guarded" },
	{ "filesystem.tmp", SETTING_ENUM, WIDEN_HIGHER, AT(fs.tmp), words_tmp, "private",
	  .help = "/tmp of the sandbox's own, the host's by the rules, or the host's to write to" },
	{ "filesystem.home", SETTING_ENUM, WIDEN_LOWER, AT(fs.home), words_home, "real",
	  .help = "the real home directory, or an empty one of the sandbox's own" },
	{ "filesystem.allowGitConfig", SETTING_BOOL, WIDEN_HIGHER, AT(fs.allow_git_config),
	  .help = "lift the protection of .git/config" },
	{ "filesystem.disabled", SETTING_REFUSED, WIDEN_NEUTRAL, 0,
	  .help = "say what is wanted instead: \"allowWrite\": [\"/\"]" },

	{ "limits.memory", SETTING_SIZE, WIDEN_HIGHER, AT(limits.memory),
	  .help = "memory of all processes" },
	{ "limits.cpu", SETTING_NUMBER, WIDEN_HIGHER, AT(limits.cpu), .help = "processors" },
	{ "limits.pids", SETTING_COUNT, WIDEN_HIGHER, AT(limits.pids), .help = "processes and threads" },
	{ "limits.disk", SETTING_SIZE, WIDEN_HIGHER, AT(limits.disk), .help = "bytes written to disk" },
	{ "limits.output", SETTING_SIZE, WIDEN_HIGHER, AT(limits.output), .help = "bytes printed" },
	{ "limits.timeout", SETTING_DURATION, WIDEN_HIGHER, AT(limits.timeout_ms), .help = "run time" },

	{ "environment.inherit", SETTING_ENUM, WIDEN_HIGHER, AT(env.inherit), words_inherit, "safe",
	  .help = "safe leaves out secrets, hooks of loaders and interpreters, sockets of agents" },
	{ "environment.pass", SETTING_STRINGS, WIDEN_ADDING, AT(env.pass), .check = check_variable,
	  .help = "variables to inherit whatever `inherit` says" },
	{ "environment.passPrefix", SETTING_STRINGS, WIDEN_ADDING, AT(env.pass_prefix),
	  .check = check_variable, .help = "the same for all names with this beginning" },
	{ "environment.deny", SETTING_STRINGS, WIDEN_NEVER, AT(env.deny), .check = check_variable,
	  .help = "variables that are not inherited, whatever else says so" },
	{ "environment.set", SETTING_ENV, WIDEN_ADDING, AT(env.set), .help = "variables to set" },

	{ "container.image", SETTING_STRING, WIDEN_ALWAYS, AT(container.image),
	  .check = container_check_image,
	  .help = "image for the backends podman and docker; it must be on this machine already" },
	{ "container.args", SETTING_STRINGS, WIDEN_ADDING, AT(container.args),
	  .check = container_check_argument,
	  .help = "further arguments for the engine, of those that open nothing: \"--runtime=runc\"" },

	{ "excludedCommands", SETTING_STRINGS, WIDEN_ADDING, AT(excluded_commands),
	  .check = excluded_check,
	  .help = "commands that run outside the sandbox: \"docker\", \"npm run test:*\"" },
	{ "allowUnsandboxedCommands", SETTING_BOOL, WIDEN_HIGHER, AT(allow_unsandboxed_commands),
	  .help = "let excluded commands run outside; else they are refused" },
	{ "deniedCommands", SETTING_STRINGS, WIDEN_NEVER, AT(denied_commands), .check = denied_check,
	  .help = "commands that are refused; no wall, since any program can run another" },
	{ "autoAllowBashIfSandboxed", SETTING_BOOL, WIDEN_HIGHER, AT(auto_allow_bash), .def = "true",
	  .help = "let an agent run sandboxed commands without asking" },
	{ "enabled", SETTING_BOOL, WIDEN_LOWER, AT(enabled), .def = "true", .help = "use the sandbox" },
	{ "backend", SETTING_ENUM, WIDEN_ALWAYS, AT(backend), words_backend, "auto",
	  .help = "by what the policy is enforced" },
	{ "fallback", SETTING_ENUM, WIDEN_HIGHER, AT(fallback), words_fallback, "enforce",
	  .help = "refuse, or warn and go on, when the wanted strength cannot be had" },
	{ "require", SETTING_STRINGS, WIDEN_NEVER, AT(require), words_require,
	  .help = "properties that must be enforced here (see ambit check)" },
	{ "ignoreViolations", SETTING_IGNORE, WIDEN_ADDING, AT(ignore),
	  .help = "not reported: from part of the command, or \"*\", to parts of the report" },
	{ "enableWeakerNestedSandbox", SETTING_BOOL, WIDEN_HIGHER, AT(weaker_nested),
	  .help = "run inside a container that forbids a /proc of our own" },
	{ "profiles", SETTING_PROFILES, WIDEN_NEUTRAL, AT(profiles), .help = "named profiles, or files" },
	{ "claudeSettings", SETTING_BOOL, WIDEN_ALWAYS, AT(claude_settings),
	  .help = "read Claude Code's own settings too: sandbox and permissions" },
	{ "audit.path", SETTING_STRING, WIDEN_ALWAYS, AT(audit_path), .check = check_log_path,
	  .help = "the audit log, in a directory of its own; \"none\" for no log" },
	{ "audit.maxSize", SETTING_SIZE, WIDEN_ALWAYS, AT(audit_max_size), .def = "16m",
	  .help = "a log larger than this is put aside and a new one begun" },
	{ "audit.maxFiles", SETTING_COUNT, WIDEN_ALWAYS, AT(audit_max_files), .def = "8",
	  .help = "how many files that were put aside are kept" },
	{ "audit.redact", SETTING_BOOL, WIDEN_LOWER, AT(audit_redact), .def = "true",
	  .help = "leave secrets out of the audit log" },
	{ "log.format", SETTING_ENUM, WIDEN_ALWAYS, AT(log_format), words_log_format, "auto",
	  .help = "of the session log: text, jsonl, or auto, which is jsonl for a FILE.jsonl" },
	{ "log.maxSize", SETTING_SIZE, WIDEN_ALWAYS, AT(log_max_size), .def = "10m",
	  .help = "a session log larger than this is put aside and a new one begun; 0: never" },
	{ "log.maxFiles", SETTING_COUNT, WIDEN_ALWAYS, AT(log_max_files), .def = "5",
	  .help = "how many session logs that were put aside are kept" },

	{ "locked", SETTING_LOCKED, WIDEN_NEUTRAL, 0,
	  .help = "managed file only: keys that nobody else may set or add to" },

	{ "credentials", SETTING_REFUSED, WIDEN_NEUTRAL, 0,
	  .help = "secrets are hidden instead: filesystem.denyRead, environment.inherit" },
	{ "allowNestedUserNamespaces", SETTING_REFUSED, WIDEN_NEUTRAL, 0,
	  .help = "nested user namespaces would undo the file rules" },
	{ "enableWeakerNetworkIsolation", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "macOS only" },
	{ "allowAppleEvents", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "macOS only" },
	{ "allowPty", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "macOS only" },
	{ "windows", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "Windows only" },
	{ "ripgrep", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "not needed: nothing is scanned" },
	{ "mandatoryDenySearchDepth", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0,
	  .help = "not needed: protected names hold at any depth" },
	{ "seccomp", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "not needed: built in" },
	{ "bwrapPath", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "not needed by the native backend" },
	{ "socatPath", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "not needed: built in" },
	{ "javaAgentJarPath", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "not needed" },
	{ "git.safeDirectories", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0,
	  .help = "not needed: the command keeps the caller's user id" },

	{ "origins", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "printed by ambit policy --json" },
	{ "protected", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "printed by ambit policy --json" },
	{ "notes", SETTING_ACCEPTED, WIDEN_NEUTRAL, 0, .help = "printed by ambit policy --json" },
	/* clang-format on */
};

const size_t settings_count = ARRAY_LEN(settings_table);

int setting_find(const char *key)
{
	for (size_t i = 0; i < settings_count; i++) {
		if (strcmp(settings_table[i].key, key) == 0)
			return (int)i;
	}
	return -1;
}

bool setting_is_group(const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < settings_count; i++) {
		const char *k = settings_table[i].key;

		if (strncmp(k, key, len) == 0 && k[len] == '.')
			return true;
	}
	return false;
}

static const char *last_component(const char *key)
{
	const char *dot = strrchr(key, '.');

	return dot ? dot + 1 : key;
}

/*
 * Nearest by spelling; the right name in the wrong object counts as near too
 * ("allowWrite" for "filesystem.allowWrite").
 */
const char *setting_suggest(const char *key)
{
	static const char *const groups[] = { "network",     "network.parentProxy",
					      "filesystem",  "limits",
					      "environment", "container",
					      "audit",       "log" };
	const char *best = NULL;
	unsigned best_distance = 0;

	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		unsigned d = text_distance(groups[i], key);

		if (!best || d < best_distance) {
			best = groups[i];
			best_distance = d;
		}
	}
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings_table[i];
		unsigned d = text_distance(s->key, key);
		unsigned last = text_distance(last_component(s->key), last_component(key)) + 1;

		if (s->type == SETTING_ACCEPTED || s->type == SETTING_REFUSED)
			continue;
		if (last < d)
			d = last;
		if (d < best_distance) {
			best = s->key;
			best_distance = d;
		}
	}
	return best_distance <= 1 + strlen(last_component(key)) / 5 ? best : NULL;
}

/* The rows [lo, hi) share the first `prefix` bytes of their keys. */
static void walk_range(const struct setting_visitor *v, size_t lo, size_t hi, size_t prefix,
		       unsigned depth)
{
	while (lo < hi) {
		const char *key = settings_table[lo].key, *name = key + prefix;
		size_t len = strcspn(name, "."), end = lo + 1;
		char group[64];

		if (name[len] == '\0' || len >= sizeof(group) || depth >= KEY_DEPTH_MAX) {
			v->leaf(v->ctx, name, lo++);
			continue;
		}
		while (end < hi && strncmp(settings_table[end].key, key, prefix + len + 1) == 0)
			end++;
		memcpy(group, name, len);
		group[len] = '\0';
		v->open(v->ctx, group);
		walk_range(v, lo, end, prefix + len + 1, depth + 1);
		v->close(v->ctx);
		lo = end;
	}
}

void settings_walk(const struct setting_visitor *v)
{
	walk_range(v, 0, settings_count, 0, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "audit/redact.h"
#include "base/text.h"

static const char *clean(struct buf *b, const char *text)
{
	buf_done(b);
	redact_text(text, strlen(text), b);
	return buf_str(b);
}

/* What goes in, what comes out; without a second text nothing changes. */
static const struct {
	const char *in, *out;
} texts[] = {
	/* URLs */
	{ "https://me:hunter2@host/x", "https://me:[redacted]@host/x" },
	{ "postgres://u:p@ss@db:5432/x", "postgres://u:[redacted]@db:5432/x" },
	{ "postgres://u:pa/ss@db/x", "postgres://u:[redacted]@db/x" },
	{ "redis://:pw@h", "redis://:[redacted]@h" },
	{ "https://x-access-token-0123456789@github.com/a", "https://[redacted]@github.com/a" },
	{ "ssh://git@github.com/a:b", NULL },
	{ "https://registry.example:443/@scope/pkg", NULL },
	{ "https://host/@scope/a:b@c", NULL },
	{ "git clone https://u:pw@h/r.git https://h2/r",
	  "git clone https://u:[redacted]@h/r.git https://h2/r" },
	{ "https://h/?a=1&token=abc&b=2", "https://h/?a=1&token=[redacted]&b=2" },
	{ "https://h/?X-Amz-Signature=abcd", "https://h/?X-Amz-Signature=[redacted]" },
	/* names */
	{ "PASSWORD=hunter2 make", "PASSWORD=[redacted] make" },
	{ "export DB_PASS='a b;c' x", "export DB_PASS='[redacted]' x" },
	{ "MYSQL_PWD=x y", "MYSQL_PWD=[redacted] y" },
	{ "AWS_SECRET_ACCESS_KEY=a/b+c x", "AWS_SECRET_ACCESS_KEY=[redacted] x" },
	{ "{\"apiKey\": \"abc\", \"n\": 1}", "{\"apiKey\": \"[redacted]\", \"n\": 1}" },
	{ "{\\\"password\\\":\\\"abc\\\"}", "{\\\"password\\\":\\\"[redacted]\\\"}" },
	{ "client_secret: abc", "client_secret: [redacted]" },
	{ "--token abc --x", "--token [redacted] --x" },
	{ "--password=abc", "--password=[redacted]" },
	{ "--password -x", NULL },
	{ "--password-stdin registry", NULL },
	{ "--password-file /run/x", NULL },
	{ "PWD=/home/me OLDPWD=/", NULL },
	{ "max_tokens: 1024", NULL },
	{ "refresh_tokens: abcdefghijkl", "refresh_tokens: [redacted]" },
	{ "PASSWORD= make", NULL },
	{ "the password is lost", NULL },
	{ "a token is a word", NULL },
	{ "secret://host/x", NULL },
	/* headers */
	{ "-H 'Authorization: Bearer abc.def' -v", "-H 'Authorization: Bearer [redacted]' -v" },
	{ "Authorization: abc def\nHost: x", "Authorization: [redacted]\nHost: x" },
	{ "cookie: a=b; c=d\r\nx", "cookie: [redacted]\r\nx" },
	{ "X-Api-Key: 1234", "X-Api-Key: [redacted]" },
	{ "got Bearer abcdef123456 here", "got Bearer [redacted] here" },
	{ "Basic authentication is on", NULL },
	{ "Basic dXNlcjpwYXNz=", "Basic [redacted]" },
	/* forms */
	{ "x ghp_0123456789abcdefghij y", "x ghp_[redacted] y" },
	{ "sk-ant-api03-abcdefghijklmnop", "sk-[redacted]" },
	{ "AKIAIOSFODNN7EXAMPLE", "AKIA[redacted]" },
	{ "xoxb-123456789012-abc", "xoxb-[redacted]" },
	{ "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_x", "eyJ[redacted]" },
	{ "task-0123456789abcdefghijklmn", NULL },
	{ "0123456789abcdef0123456789abcdef01234567", NULL },
	{ "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx",
	  "-----BEGIN [redacted]\nx" },
	{ "-----BEGIN CERTIFICATE-----\nabc", NULL },
	{ "-----BEGIN PRIVATE KEY-----\ncut", "-----BEGIN [redacted]" },
	/* commands */
	{ "curl -u me:pw https://h", "curl -u me:[redacted] https://h" },
	{ "curl --user 'me:p w' h", "curl --user 'me:[redacted]' h" },
	{ "sort -u a:b", NULL },
	{ "openssl enc -pass pass:abc -in a", "openssl enc -pass pass:[redacted] -in a" },
	{ "x --password --S3cret y", "x --password [redacted] y" },
	{ "npm install left-pad@1.3.0 --save", NULL },
	{ "", NULL },
};

#define PEM_LINE "MIIEowIBAAKCAQEAx0bS4Zc9q+1Xf/abcdefghijklmnop"

/* What a command could hide behind a secret, or behind what looks like the name of one. */
static const struct {
	const char *in, *out;
} unhidden[] = {
	/* the quote behind the name closes its string */
	{ "echo 'password: '; touch EVIL; echo hidden", NULL },
	{ "echo \"password: \"; touch EVIL; echo hidden", NULL },
	{ "echo 'enter the password:'; touch EVIL; echo ''", NULL },
	{ "echo 'password: ';touch${IFS}EVIL;echo ' '", NULL },
	{ "echo 'PASSWORD='; touch EVIL; echo 'x'", NULL },
	{ "echo \"TOKEN=\" $(touch EVIL) \"\"", NULL },
	{ "bash -c \"echo 'password: '; touch X; echo ' '\"", NULL },
	{ "bash -c 'echo \"password: \";touch${IFS}X;echo \" \"'", NULL },
	{ "bash -c \"echo \\\"password: \\\";touch${IFS}X; echo \\\" \\\"\"", NULL },
	{ "print(f'password: ') or os.system('touch EVIL')", NULL },
	{ "print('it\\'s', 'password: '), run('x')", NULL },
	{ "echo \"PASSWORD='\";touch${IFS}EVIL;echo \"'\"", NULL },
	{ "echo 'PASSWORD=\"';touch${IFS}EVIL;echo '\"'", NULL },
	{ "print(\"password:\", x, \"y\")", NULL },
	{ "echo '\\' 'password: ';touch${IFS}EVIL;echo ' '", NULL },
	{ "# dogs' life\necho 'password: ';touch${IFS}EVIL;echo ' '", NULL },
	{ "cat <<E\ndogs'\nE\necho 'password: '; touch EVIL; echo ' '", NULL },
	{ "echo 'password: 'hunter2 x", "echo 'password: '[redacted] x" },
	{ "can't use password: 'hunter2' here", "can't use password: '[redacted]' here" },
	{ "echo 'password'] = 'x'; touch EVIL", "echo 'password'] = '[redacted]'; touch EVIL" },
	/* and these open one */
	{ "echo 'a'; PASSWORD='a b' make", "echo 'a'; PASSWORD='[redacted]' make" },
	{ "sh -c \"PASSWORD='a b' make\"", "sh -c \"PASSWORD='[redacted]' make\"" },
	{ "don't; password: \"a b\" x", "don't; password: \"[redacted]\" x" },
	{ "d['password'] = 'a b'", "d['password'] = '[redacted]'" },
	{ "{\\\\\\\"password\\\\\\\":\\\\\\\"a b\\\\\\\"}",
	  "{\\\\\\\"password\\\\\\\":\\\\\\\"[redacted]\\\\\\\"}" },
	{ "{\"password\": 'a\"b'}", "{\"password\": '[redacted]'}" },
	{ "password: `abc`", "password: `[redacted]`" },
	/* no secret goes on in a command, on the next line, in what is run for its output */
	{ "PASSWORD='abc\ntouch EVIL", "PASSWORD='[redacted]\ntouch EVIL" },
	{ "password:\ntouch EVIL", NULL },
	{ "x --password\ntouch EVIL", NULL },
	{ "x --password \\\n abc y", "x --password \\\n [redacted] y" },
	{ "PASSWORD=`touch EVIL` x", NULL },
	{ "PASSWORD=\"$(touch EVIL)\" x", NULL },
	{ "echo Authorization: abc; touch EVIL", "echo Authorization: [redacted]; touch EVIL" },
	{ "echo Authorization: $(touch EVIL)", NULL },
	{ "Authorization:\ntouch EVIL", NULL },
	{ "echo cookie: a=b; touch EVIL", "echo cookie: [redacted]; touch EVIL" },
	{ "echo cookie: a=b; X=1 touch EVIL", "echo cookie: [redacted] touch EVIL" },
	{ "echo cookie: a=b && touch EVIL", "echo cookie: [redacted] && touch EVIL" },
	{ "Set-Cookie: a=b; Path=/; HttpOnly\nx", "Set-Cookie: [redacted]\nx" },
	{ "-H 'Cookie: a=v=2&l=en; s=x' h", "-H 'Cookie: [redacted]' h" },
	{ "x://a:b;{touch,EVIL};@c", NULL },
	{ "x://a:b;sh<evil;@c", NULL },
	{ "psql 'postgres://u:p;w&x@h/d'", "psql 'postgres://u:[redacted]@h/d'" },
	/* of a key only the key */
	{ "grep -rq -e '-----BEGIN RSA PRIVATE KEY-----' .; touch EVIL3; echo visible", NULL },
	{ "echo '-----BEGIN PRIVATE KEY-----'; touch EVIL; echo '-----END PRIVATE KEY-----'",
	  NULL },
	{ "-----BEGIN PRIVATE KEY-----\ntouch EVIL\n-----END PRIVATE KEY-----", NULL },
	{ "-----BEGIN PRIVATE KEY-----\n" PEM_LINE "\n" PEM_LINE "\ntouch EVIL\n",
	  "-----BEGIN [redacted]\ntouch EVIL\n" },
	{ "-----BEGIN PRIVATE KEY-----\n" PEM_LINE "\n" PEM_LINE "\nAb=\ntouch\n",
	  "-----BEGIN [redacted]\ntouch\n" },
	{ "K='-----BEGIN PRIVATE KEY-----\n" PEM_LINE "\nab\n-----END PRIVATE KEY-----' x",
	  "K='-----BEGIN [redacted]' x" },
	{ "PRIVATE_KEY='-----BEGIN PRIVATE KEY-----\n" PEM_LINE
	  "\nab\n-----END PRIVATE KEY-----' x",
	  "PRIVATE_KEY='-----BEGIN [redacted]' x" },
	{ "\"-----BEGIN PRIVATE KEY-----\\n" PEM_LINE "\\nab\\n-----END PRIVATE KEY-----\\n\"",
	  "\"-----BEGIN [redacted]\\n\"" },
	{ "'-----BEGIN PRIVATE KEY-----\\n' +\n'" PEM_LINE "\\n' +\n'ab='; x",
	  "'-----BEGIN [redacted]\\n' +\n'ab='; x" },
	{ "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,AB\n\n" PEM_LINE
	  "\n-----END RSA PRIVATE KEY-----\nx",
	  "-----BEGIN [redacted]\nx" },
};

#define HEX32 "0123456789abcdef0123456789abcdef"
#define CHARS40 "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7jKl0n"
#define CHARS35 "AAF3dEf6hIj9lMn2pQr5tUv8x-z1bCd4fGh"

/* What issuers put in front of a token; it stays. */
static const struct {
	const char *prefix, *rest;
} tokens[] = {
	{ "SG.", "ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf-09kqeF8tAmbihYzrnopKc-1s5cr" },
	{ "GOCSPX-", "Ab3dEf6hIj9lMn2pQr5tUv8x_z1b" },
	{ "gsk_", CHARS40 "Ab3dEf6hIj9l" },
	{ "xai-", CHARS40 CHARS40 },
	{ "pplx-", CHARS40 "12345678" },
	{ "r8_", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7jK" },
	{ "glsa_", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4f_0123abcd" },
	{ "glc_", "eyJvIjoiMTIzIiwibiI6InRlc3QiLCJrIjoiYWJjIn0=" },
	{ "sntrys_", "eyJpYXQiOjE2OTAwMDAwMDAsInVybCI6Imh0dHBzIn0=_" CHARS40 },
	{ "ATATT3x", "FfGF0" CHARS40 "_-" CHARS40 "=0A1B2C3D" },
	{ "dapi", HEX32 },
	{ "PMAK-", "0123456789abcdef01234567-0123456789abcdef0123456789abcdef01" },
	{ "shpss_", HEX32 },
	{ "doo_v1_", HEX32 HEX32 },
	{ "ntn_", CHARS40 },
	{ "hvb.", "AAAAAQ" CHARS40 },
	{ "rk_test_", CHARS40 },
	{ "rk_live_", CHARS40 },
	{ "sq0atp-", "Ab3dEf6hIj9lMn2pQr5tUv" },
	{ "rubygems_", "0123456789abcdef" HEX32 },
	{ "pul-", "01234567" HEX32 },
	{ "sbp_", "01234567" HEX32 },
	{ "nfp_", CHARS40 },
	{ "ops_eyJ", CHARS40 CHARS40 },
	{ "dp.pt.", CHARS40 },
	{ "glptt-", CHARS40 },
	{ "glcbt-", "64_Ab3dEf6hIj9lMn2pQr5t" },
	{ "xoxc-", "123456789012-123456789012-" HEX32 },
	{ "xoxd-", "Ab3%2BdEf6hIj9l%2Fn2pQ%3D%3D" },
	{ "CCIPAT_", "Ab3dEf6hIj9lMn2pQr5tUv_0123456789abcdef" },
	{ "NRAK-", "AB3DEF6HIJ9LMN2PQR5TUV8XYZ1" },
	{ "Ab3dEf6hIj9lMn.atlasv1.", CHARS40 CHARS35 },
	{ "123456789:", CHARS35 },
	{ "https://api.telegram.org/bot123456789:", CHARS35 },
	{ "https://hooks.slack.com/services/", "T00000000/B00000000/Ab3dEf6hIj9lMn2pQr5tUv8x" },
	{ "https://discord.com/api/webhooks/", "123456789012345678/" CHARS40 CHARS35 },
	{ "https://discordapp.com/api/webhooks/", "123456789012345678/" CHARS40 CHARS35 },
};

/* And what only looks a little like one. */
static const char *const no_tokens[] = {
	"SG.example.com",
	"xai-grok-mode",
	"pul-request",
	"dapi-client dapi0123",
	"r8_g8_b8_a8",
	"ntn_count glc_init nfp_list sbp_read",
	"gsk_text_view_get_buffer_with_iter_at_end",
	"dp.pt.x",
	"127.0.0.1:8080 12345678:90",
	"1700000000:0123456789abcdef0123456789abcdef01234567",
	"https://hooks.slack.com/services/ https://discord.com/api/webhooks/12",
	"docs/a.atlasv1.b",
	"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
};

/* Secrets by the program that reads them, as text. S3cret is taken out, all else stays. */
static const char *const commands[] = {
	"mysql -u root -pS3cret db",
	"bash -c 'mysql -u root -pS3cret db'",
	"bash -c \"mysql -u root -p'S3cret' db\"",
	"A=1 /usr/bin/mysqldump -pS3cret db | gzip",
	"sudo -u me env X=1 timeout 5 nice mysql -pS3cret",
	"docker exec db mysql -uroot -pS3cret -e 'select 1; select 2'",
	"cd x && mysql -h h -pS3cret; mkdir -pv y",
	"x=$(mysql -pS3cret -e y)",
	"subprocess.run([\"mysql\", \"-pS3cret\", \"db\"])",
	"subprocess.run(['curl', '-u', 'me:S3cret', 'https://h'])",
	"sshpass -p S3cret ssh -p 2222 h",
	"sshpass -pS3cret ssh -p 2222 h",
	"curl -ume:S3cret h",
	"curl -su me:S3cret h",
	"curl -u me:\"S3cret\" h",
	"curl -sSu 'me:S3cret' h",
	"curl --user=me:S3cret h",
	"curl -H 'a; b' -u me:S3cret h",
	"curl -s \\\n -u me:S3cret \\\n h",
	"curl --proxy-user me:S3cret h",
	"curl -U me:S3cret h",
	"curl -b session=S3cret h",
	"docker login -u me -p S3cret r.example.org",
	"podman login -pS3cret r",
	"redis-cli -h h -a S3cret ping",
	"mongosh -u me -p S3cret h/db",
	"mongo -p S3cret",
	"zip -P S3cret a.zip b",
	"zip -rP S3cret a.zip b",
	"7z a -pS3cret a.7z b",
	"sqlcmd -S h -U sa -P S3cret -Q x",
	"ldapsearch -x -D cn=a -w S3cret -b dc=x",
	"openssl enc -aes-256-cbc -k S3cret -in a",
	"aws configure set aws_secret_access_key S3cret",
	"npm config set //registry.npmjs.org/:_authToken S3cret",
	"git config --global github.token S3cret",
};

static const char *const no_commands[] = {
	"mkdir -pv mysql",
	"mysql -p db",
	"docker run -p 8080:80 nginx",
	"docker login; docker run -p 8080:80 nginx",
	"ssh -p 2222 h",
	"curl -b cookies.txt h",
	"curl -u me h",
	"curl -XPUT h",
	"curl -o a:b h; sort -u a:b",
	"redis-cli -a",
	"tar -xzf a -C b",
	"x --password --verbose",
	"x --password --level=3",
	"git config user.name me",
	"the config token is a word",
	"zip -r a.zip b",
	"grep -w x; ldapsearch -x -W",
	"echo 'curl -u '; touch EVIL; echo ':x'",
	"echo 'sshpass -p '; touch EVIL",
	"sshpass -p\ntouch EVIL",
};

/* Names, of which S3cret is the value. */
static const char *const named[] = {
	"STRIPE_KEY=S3cret x",
	"export OPENAI_KEY='S3cret'",
	"AZURE_STORAGE_KEY=S3cret",
	"APP_KEY=S3cret",
	"password := \"S3cret\"",
	"assert token == \"S3cret\"",
	"MASTER_KEY: S3cret",
	"AccountName=a;AccountKey=S3cret;EndpointSuffix=b",
	"https://h/v1?key=S3cret&x=1",
	"'https://h/v1?x=1&key=S3cret'",
	"os.environ['DB_PASS']='S3cret'",
	"os.environ[\"DB_PASS\"] = \"S3cret\"",
	"process.env['API_KEY'] = 'S3cret'",
	"--pwd S3cret x",
	"Server=a;Uid=b;Pwd=S3cret;Timeout=3",
	"server=a;uid=b;pwd=S3cret;timeout=3",
	"vault write x --secret-id S3cret",
	"VAULT_SECRET_ID=S3cret",
	"--account-key S3cret x",
	"Ocp-Apim-Subscription-Key: S3cret",
};

static const char *const not_named[] = {
	"KEY=value",
	"{\"key\": \"value\", \"sort_key\": \"name\"}",
	"id INTEGER primary_key=True",
	"PRIMARY_KEY=id FOREIGN_KEY=x CACHE_KEY=v1-linux",
	"keyboard=us KEYBOARD=us monkey=1",
	"public_key=abc PUBLIC_KEY=abc SSH_PUBLIC_KEY=abc",
	"sort --key=2 --field-separator=:",
	"SSL_KEY=/etc/ssl/key.pem TLS_KEY=./key.pem",
	"MAX_KEY=100",
	"https://h/?key=name&sort_key=x",
	"PWD=/home/me; pwd; echo $PWD",
	"bash: pwd: command not found",
	"CLIENT_ID=abc --key-id abc",
	"for key in d: print(key, d[key])",
	"DB_PASS in os.environ['x']",
};

static void check_text(const char *in, const char *want)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT), again = BUF_INIT(BUF_MAX_TEXT);

	want = want ? want : in;
	assert_string_equal(clean(&b, in), want);
	/* what is clean stays as it is */
	assert_string_equal(clean(&again, buf_str(&b)), want);
}

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		check_text(texts[i].in, texts[i].out);
}

static void test_tokens(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		_cleanup_buf_ struct buf in = BUF_INIT(BUF_MAX_TEXT), out = BUF_INIT(BUF_MAX_TEXT);

		buf_printf(&in, "x '%s%s' y", tokens[i].prefix, tokens[i].rest);
		buf_printf(&out, "x '%s" REDACTED "' y", tokens[i].prefix);
		check_text(buf_str(&in), buf_str(&out));
	}
	for (size_t i = 0; i < ARRAY_LEN(no_tokens); i++)
		check_text(no_tokens[i], NULL);
}

static void expect_secret(const char *in, struct buf *ret)
{
	static const char secret[] = "S3cret";
	const char *hit = strstr(in, secret);

	assert_non_null(hit);
	buf_append(ret, in, (size_t)(hit - in));
	buf_printf(ret, REDACTED "%s", hit + sizeof(secret) - 1);
}

static void check_secret(const char *in)
{
	_cleanup_buf_ struct buf want = BUF_INIT(BUF_MAX_TEXT);

	expect_secret(in, &want);
	check_text(in, buf_str(&want));
}

static void test_commands(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		check_secret(commands[i]);
	for (size_t i = 0; i < ARRAY_LEN(no_commands); i++)
		check_text(no_commands[i], NULL);
}

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		check_secret(named[i]);
	for (size_t i = 0; i < ARRAY_LEN(not_named); i++)
		check_text(not_named[i], NULL);
}

static void test_hides_nothing_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(unhidden); i++)
		check_text(unhidden[i].in, unhidden[i].out);
}

#define WORDS_MAX 12

/* Words with | between them. */
static void check_words(const char *in, const char *want)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	char text[256], *argv[WORDS_MAX + 1] = { NULL }, *rest = text;
	size_t n = 0;

	text_copy(text, sizeof(text), in);
	while (rest && n < WORDS_MAX)
		argv[n++] = strsep(&rest, "|");
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(&b, '|');
		redact_argument(argv, i, &b);
	}
	assert_string_equal(buf_str(&b), want);
}

static void test_words(void **state)
{
	(void)state;
	check_words("x|--password|a b|c", "x|--password|[redacted]|c");
	check_words("x|--password|--verbose", "x|--password|--verbose");
	check_words("env|API_TOKEN=a;b(c) d|ls", "env|API_TOKEN=[redacted]|ls");
	check_words("/usr/bin/mysql|-psecret|db", "/usr/bin/mysql|-p[redacted]|db");
	check_words("mkdir|-pv|db", "mkdir|-pv|db");
	check_words("sshpass|-p|x y|ssh", "sshpass|-p|[redacted]|ssh");
	check_words("env|A=1|curl|-u|me:x:y", "env|A=1|curl|-u|me:[redacted]");
	check_words("curl|-H|Authorization: Bearer x|h",
		    "curl|-H|Authorization: Bearer [redacted]|h");
	check_words("sh|-c|TOKEN=abc make && echo ok", "sh|-c|TOKEN=[redacted] make && echo ok");
	/* a script, with something behind the assignment */
	check_words("ssh|h|TOKEN=abc touch EVIL", "ssh|h|TOKEN=[redacted] touch EVIL");
	check_words("bash|-c|--|TOKEN=abc; x", "bash|-c|--|TOKEN=[redacted]; x");
	check_words("env|-S|TOKEN=abc touch EVIL", "env|-S|TOKEN=[redacted] touch EVIL");
	check_words("x|TOKEN=abc\ntouch EVIL", "x|TOKEN=[redacted]\ntouch EVIL");
}

/* The same commands as words, where no quotes are needed. */
static void test_command_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		_cleanup_buf_ struct buf in = BUF_INIT(BUF_MAX_TEXT), want = BUF_INIT(BUF_MAX_TEXT);

		if (strpbrk(commands[i], "'\"|;$&("))
			continue;
		for (const char *c = commands[i]; *c; c++)
			buf_putc(&in, *c == ' ' ? '|' : *c);
		expect_secret(buf_str(&in), &want);
		check_words(buf_str(&in), buf_str(&want));
	}
	check_words("docker|run|-p|80:80|x", "docker|run|-p|80:80|x");
	check_words("sshpass|-p|S3|ssh|-p|22|h", "sshpass|-p|[redacted]|ssh|-p|22|h");
	check_words("x|--password|--S3cret", "x|--password|[redacted]");
	check_words("curl|-d|a:b|-o|c:d|h", "curl|-d|a:b|-o|c:d|h");
	check_words("sudo|mysql|-p|db", "sudo|mysql|-p|db");
}

static void test_json(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "{\"password\":\"a\\\"b\",\"n\":12345678901234567890123}",
		  "{\"password\":\"[redacted]\",\"n\":12345678901234567890123}" },
		{ "{\"pass\\u0077ord\" : \"x\"}", "{\"password\":\"[redacted]\"}" },
		{ "{\"auth\":{\"user\":\"u\",\"n\":[1,\"x\",true,null]}}",
		  "{\"auth\":{\"user\":\"[redacted]\",\"n\":[\"[redacted]\",\"[redacted]\",true,"
		  "null]}}" },
		{ "[\"https://u:p@h\", {\"cmd\":\"TOKEN=abc\"}]",
		  "[\"https://u:[redacted]@h\",{\"cmd\":\"TOKEN=[redacted]\"}]" },
		{ "{\"token\":\"\"}", "{\"token\":\"\"}" },
		{ "{\"max_tokens\":100}", "{\"max_tokens\":100}" },
		{ "\"AKIAIOSFODNN7EXAMPLE\"", "\"AKIA[redacted]\"" },
		{ " {} ", "{}" },
	};
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		buf_done(&b);
		assert_int_equal(redact_json(cases[i].in, strlen(cases[i].in), &b), 0);
		assert_string_equal(buf_str(&b), cases[i].out);
	}
	buf_done(&b);
	assert_int_equal(redact_json("{", 1, &b), -22);
	assert_int_equal(b.len, 0);
}

/* Texts in which a match may begin everywhere; each took many seconds once, now a part of one. */
static void test_takes_no_long(void **state)
{
	static const char *const parts[] = { "://",
					     "://a:b/",
					     "eyJ-",
					     "-u ",
					     "-----BEGIN ",
					     "token=",
					     "basic ",
					     "password: ",
					     "password: '",
					     "cookie: a=b;",
					     "'\\",
					     "token \\\n",
					     "-----BEGIN PRIVATE KEY-----\n",
					     "curl -u ",
					     "mysql -p'",
					     "a ",
					     "\\ " };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		_cleanup_buf_ struct buf in = BUF_INIT(BUF_MAX_TEXT), out = BUF_INIT(BUF_MAX_TEXT);
		clock_t start = clock();

		while (in.len < (size_t)128 << 10)
			buf_puts(&in, parts[i]);
		redact_text(in.data, in.len, &out);
		assert_true(clock() - start < (clock_t)4 * CLOCKS_PER_SEC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_hides_nothing_else),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_command_words),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_takes_no_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

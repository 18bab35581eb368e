# SPDX-License-Identifier: Apache-2.0
"""ambit learn and the network: public hosts are let through and learned, with their ports;
private addresses are not."""
import json


def learn(box, script, options=()):
    box.options = []
    return box.ambit("learn", "-o", "learned.yaml", *options, "--", "sh", "-c", script)


def again(box, script):
    r = box.run("sh", "-c", script, options=["-s", "learned.yaml", "--report", "report.json"]).ok()
    assert json.loads((box.ws / "report.json").read_text())["violations"] == [], r
    return r


def test_hosts_are_learned(net, box):
    script = ("curl -sSf http://allowed.test/one && curl -sSf --cacert %s https://other.test/two && "
              "curl -sSf --noproxy '*' http://allowed.test/three" % net.certificate)
    r = learn(box, script).ok()
    assert r.out.count("hello from") == 3, r
    text = (box.ws / "learned.yaml").read_text()
    assert '- "allowed.test:80" # 2 connections' in text, text
    assert '- "other.test:443" # 1 connection,' in text, text
    assert again(box, script).out.count("hello from") == 3
    # and no more than that
    r = box.run("curl", "-sS", "http://evil.test/", options=["-s", "learned.yaml"])
    assert "denied connect to evil.test" in r.err


def test_rules_of_the_user_stay(net, box):
    learn(box, "curl -sSf http://allowed.test/", ["--allow-domain", "allowed.test"]).ok()
    assert '- "allowed.test" #' in (box.ws / "learned.yaml").read_text()


def test_private_addresses_are_not_learned(net, box):
    learn(box, "curl -sS -m 3 http://10.1.1.1/; curl -sS -m 3 http://169.254.169.254/; true").ok()
    text = (box.ws / "learned.yaml").read_text()
    _, _, listed = text.partition("# Not learned")
    assert "network:" not in text, text
    assert "connect 10.1.1.1:80" in listed and "connect 169.254.169.254:80" in listed, text

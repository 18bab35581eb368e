# SPDX-License-Identifier: Apache-2.0
def test_world(net, box):
    r = box.host("curl", "-sS", "http://allowed.test/")
    print(r)
    r = box.host("curl", "-sS", "--cacert", net.certificate, "https://allowed.test/")
    print(r)
    r = box.host("curl", "-sS", "http://v6.test/")
    print(r)
    r = box.run("curl", "-sS", "http://allowed.test/")
    print(r)
    r = box.run("curl", "-sS", "http://other.test/")
    print(r)
    for e in net.events: print(e)
    assert 0

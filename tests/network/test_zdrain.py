import time
def test_drain(net, box):
    n=0
    for i in range(20):
        net.forget()
        r = box.run("bash","-c","exec 3<>/dev/tcp/allowed.test/7; echo data >&3")
        time.sleep(0.1)
        n += any(e.kind=="data" for e in net.events)
    print("DELIVERED", n, "of 20")
    n=0
    for i in range(20):
        net.forget()
        r = box.run("bash","-c","exec 3<>/dev/tcp/11.2.2.2/7; echo data >&3")
        n += "denied" in r.err
    print("REPORTED", n, "of 20")
    assert 0

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# bench, or REAL, with a filter on what it sends to its parent, over the same socket: `change` of the file
# beside this one, whose name ends in .change.
import os, socket, subprocess, sys, threading

exec(open(__file__ + '.change').read())
real = os.environ.get('REAL') or bench
if sys.argv[1:] == ['--version']:
    os.execv(real, [real, '--version'])
ours = socket.socket(fileno=int(sys.argv[2]))
theirs, child_end = socket.socketpair()
child_end.set_inheritable(True)
words = ['cell', str(child_end.fileno())] + sys.argv[3:]
p = subprocess.Popen([real] + words, close_fds=False)
child_end.close()


def down():
    while True:
        data = ours.recv(65536)
        if not data:
            break
        theirs.sendall(data)
    theirs.shutdown(socket.SHUT_WR)


threading.Thread(target=down, daemon=True).start()
for line in theirs.makefile('r'):
    ours.sendall((change(line.rstrip('\n')) + '\n').encode())
sys.exit(p.wait())

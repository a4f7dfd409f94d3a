// The system calls of a traced process, in order: the writes to files and sockets and the syncs, read from strace's
// output. It judges nothing.

import { readFileSync } from 'node:fs'

/** A call that writes or syncs. Positions are lines of the trace: the order in which the kernel was entered and left. */
export interface TracedCall {
  readonly name: string
  /** The file's path, or `TCP:[FROM->TO]`. */
  readonly target: string
  /** As strace shows it: letters and digits as they are, the rest escaped. */
  readonly text: string
  readonly begin: number
  /** undefined = it never came back. */
  end: number | undefined
  /** The result; negative = it failed. */
  result: number
}

export const tracedCalls = 'fdatasync,fsync,pwrite64,pwritev,write,writev,sendto,sendmsg'

/**
 * To be put before a command. The tracer is a grandchild, so that the process started is the traced one, and gets its
 * signals; -yy names what a descriptor leads to, -s shows whole pages, or as much as is asked for.
 */
export function tracer(file: string, shownBytes = 65536): readonly string[] {
  return [
    'strace',
    '-D',
    '-f',
    '--seccomp-bpf',
    '-yy',
    '-s',
    String(shownBytes),
    '-e',
    `trace=${tracedCalls}`,
    '-o',
    file,
  ]
}

export function readTrace(trace: string): readonly TracedCall[] {
  const calls: TracedCall[] = []
  /** By thread: a call during which another thread had something to say is split in two lines. */
  const unfinished = new Map<string, TracedCall>()
  for (const [at, line] of trace.split('\n').entries()) {
    const [, thread = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    if (rest.startsWith('<... ')) {
      const call = unfinished.get(thread)
      unfinished.delete(thread)
      if (call) finish(call, at, rest)
      continue
    }
    const [, name = '', target = ''] = /^(\w+)\(\d+<(.*?)>(?=[,) ])/.exec(rest) ?? []
    if (name === '') continue
    const call: TracedCall = { name, target, text: rest, begin: at, end: undefined, result: 0 }
    calls.push(call)
    if (rest.endsWith('<unfinished ...>')) unfinished.set(thread, call)
    else finish(call, at, rest)
  }
  return calls
}

function finish(call: TracedCall, at: number, line: string): void {
  call.end = at
  call.result = Number(/= (-?\d+)(?: [^=]*)?$/.exec(line)?.[1] ?? Number.NaN)
}

/** The tracer outlives the traced by a moment. */
export async function wholeTrace(file: string, pid: number): Promise<string> {
  for (;;) {
    const trace = readFileSync(file, 'utf8')
    if (new RegExp(`^${pid}\\s+\\+\\+\\+ (exited|killed)`, 'm').test(trace)) return trace
    await Bun.sleep(10)
  }
}

// Starts a contender's process with a small environment of its own and waits until it accepts requests. What it prints
// goes to a file, so that no contender is slowed by a terminal.

import { closeSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'

export interface Launch {
  readonly name: string
  readonly command: readonly string[]
  readonly folder: string
  readonly environment?: Readonly<Record<string, string>>
  /** The port it should listen on; without it, the one in its line `listening on http://…`. */
  readonly port?: number
  /** How long it may take until it accepts. */
  readonly startMsMax?: number
}

export interface Launched {
  readonly pid: number
  readonly port: number
  stop(): Promise<void>
}

const START_MS_MAX = 20_000
const STOP_MS_MAX = 10_000

export async function launch(plan: Launch): Promise<Launched | { readonly failed: string }> {
  const logPath = join(plan.folder, `${plan.name}.log`)
  const log = openSync(logPath, 'w')
  const child = Bun.spawn([...plan.command], {
    cwd: plan.folder,
    // Only what programs need to run: a variable of the operator's shell must not change what is measured.
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: plan.folder, TMPDIR: plan.folder, ...plan.environment },
    stdin: 'ignore',
    stdout: log,
    stderr: log,
  })
  closeSync(log)
  const stop = async () => {
    child.kill('SIGTERM')
    const force = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
    await child.exited
    clearTimeout(force)
  }
  const startMsMax = plan.startMsMax ?? START_MS_MAX
  const giveUpAt = systemClock.monotonicMs() + startMsMax
  while (systemClock.monotonicMs() < giveUpAt && child.exitCode === null && child.signalCode === null) {
    const port = plan.port ?? announcedPort(readFileSync(logPath, 'utf8'))
    if (port !== undefined && (await accepts(port))) return { pid: child.pid, port, stop }
    await Bun.sleep(30)
  }
  const ended = child.exitCode !== null || child.signalCode !== null
  await stop()
  const reason = ended ? `ended with ${child.exitCode ?? child.signalCode}` : `silent for ${startMsMax / 1000} s`
  return { failed: `did not start (${reason})${lastLine(readFileSync(logPath, 'utf8'))}` }
}

/** A port that was free a moment ago, for programs that cannot choose one and say which. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}

function announcedPort(log: string): number | undefined {
  const match = /listening on http:\/\/[^\s"]*:(\d+)/.exec(log) ?? /"url":"http:\/\/[^"]*:(\d+)/.exec(log)
  return match ? Number(match[1]) : undefined
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

function lastLine(log: string): string {
  const errorLine = log.split('\n').findLast((line) => /error/i.test(line)) ?? log.trim().split('\n').at(-1)
  return errorLine ? `: ${errorLine.trim().slice(0, 160)}` : ''
}

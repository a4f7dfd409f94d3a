// What a contender costs the machine, read from /proc: CPU time and resident memory of a process, its threads and all
// its children. Linux only, like the figures it is for.

import { readdirSync, readFileSync } from 'node:fs'

export interface Cost {
  /** User and system time since the processes began. */
  readonly cpuMicros: number
  /** Summed over the processes; pages they share count more than once. */
  readonly rssBytes: number
}

/** USER_HZ is 100 on every Linux that /proc/PID/stat speaks for, whatever the kernel's own tick. */
const MICROS_PER_TICK = 10_000

export function costOf(rootPid: number): Cost {
  let cpuMicros = 0
  let rssBytes = 0
  for (const pid of processTree(rootPid)) {
    const stat = statFields(pid)
    if (!stat) continue
    cpuMicros += (Number(stat[11]) + Number(stat[12])) * MICROS_PER_TICK
    rssBytes += residentBytes(pid)
  }
  return { cpuMicros, rssBytes }
}

export function processTree(rootPid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    const parent = Number(statFields(pid)?.[1])
    const siblings = children.get(parent)
    if (siblings) siblings.push(pid)
    else children.set(parent, [pid])
  }
  const tree = [rootPid]
  for (const pid of tree) tree.push(...(children.get(pid) ?? []))
  return tree
}

/** The fields of /proc/PID/stat after the command's name, which may itself hold blanks and brackets; 0 is the state. */
function statFields(pid: number): string[] | undefined {
  const text = readProcess(`/proc/${pid}/stat`)
  return text?.slice(text.lastIndexOf(') ') + 2).split(' ')
}

function residentBytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readProcess(`/proc/${pid}/status`) ?? '')
  return Number(line?.[1] ?? 0) * 1024
}

/** Undefined for a process that has ended in the meantime. */
function readProcess(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

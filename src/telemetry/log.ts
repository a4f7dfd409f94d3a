// Lines for people (pretty) or for machines (JSON). It is handed facts that are already free of secrets and prompts;
// nothing here decides what may be logged. Lines are gathered and written together, so that a busy second costs few
// system calls.

import { type Clock, isoTime } from '../kernel/clock.ts'
import { printableLine, printableLines } from './printable.ts'

export type LogFormat = 'pretty' | 'json'
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface Log {
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** A line that is laid out by its author, for people and as one JSON object; only the form that is written is made. */
  line(pretty: () => string, json: () => string): void
  /** Writes out what is still gathered; to be called before the process ends. */
  flush(): void
}

export interface LogOptions {
  readonly format: LogFormat
  readonly clock: Clock
  readonly write: (text: string) => void
}

/** How long a line may wait for company before it is written. */
const gatherMs = 20

export function createLog({ format, clock, write }: LogOptions): Log {
  let gathered = ''
  let timer: ReturnType<typeof setTimeout> | undefined

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (gathered === '') return
    const text = gathered
    gathered = ''
    write(text)
  }
  const put = (text: string): void => {
    gathered += `${text}\n`
    timer ??= setTimeout(flush, gatherMs)
  }
  const json = (level: string, fields: LogFields): void => {
    put(JSON.stringify({ time: isoTime(clock.now()), level, ...fields }))
  }
  const say = (level: 'info' | 'warn' | 'error', message: string, fields: LogFields = {}): void => {
    if (format === 'json') json(level, { message, ...fields })
    else {
      const text = `${level === 'info' ? '' : `${level}  `}${message}${prettyFields(fields)}`
      put(`${timeOfDay(clock.now())}  ${printableLines(text)}`)
    }
  }
  return {
    info: (message, fields) => say('info', message, fields),
    warn: (message, fields) => say('warn', message, fields),
    error: (message, fields) => say('error', message, fields),
    line: (pretty, json) => put(format === 'json' ? json() : printableLine(pretty())),
    flush,
  }
}

function prettyFields(fields: LogFields): string {
  let text = ''
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) text += `  ${name}=${value}`
  }
  return text
}

/** `14:02:11`, in the zone of the machine that prints it. */
export function timeOfDay(epochMs: number): string {
  const time = new Date(epochMs)
  const two = (part: number): string => String(part).padStart(2, '0')
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`
}

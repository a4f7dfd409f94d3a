// The log, for people (pretty) or machines (JSON). Callers pass facts that are already free of secrets and prompts.
// Lines are buffered and written together, so that a busy second costs few system calls.

import { type Clock, isoTime } from '../kernel/clock.ts'

export type LogFormat = 'pretty' | 'json'
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface Log {
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** A line that the caller formats, for people and as one JSON object. Only the configured form is created. */
  line<Subject>(subject: Subject, pretty: (subject: Subject) => string, json: (subject: Subject) => string): void
  /** Writes the buffer. Call it before the process ends. */
  flush(): void
}

export interface LogOptions {
  readonly format: LogFormat
  readonly clock: Clock
  readonly write: (text: string) => void
}

/** How long a line may be buffered. */
const bufferMs = 20

export function createLog({ format, clock, write }: LogOptions): Log {
  let buffer = ''
  let timer: ReturnType<typeof setTimeout> | undefined

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (buffer === '') return
    const text = buffer
    buffer = ''
    write(text)
  }
  const put = (text: string): void => {
    buffer += `${text}\n`
    timer ??= setTimeout(flush, bufferMs)
  }
  const say = (level: 'info' | 'warn' | 'error', message: string, fields: LogFields = {}): void => {
    if (format === 'json') put(JSON.stringify({ time: isoTime(clock.now()), level, message, ...fields }))
    else {
      const text = `${level === 'info' ? '' : `${level}  `}${message}${prettyFields(fields)}`
      put(`${timeOfDay(clock.now())}  ${printableLines(text)}`)
    }
  }
  return {
    info: (message, fields) => say('info', message, fields),
    warn: (message, fields) => say('warn', message, fields),
    error: (message, fields) => say('error', message, fields),
    line: (subject, pretty, json) => put(format === 'json' ? json(subject) : printableLine(pretty(subject))),
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

/** `14:02:11`, in the local time zone. */
export function timeOfDay(epochMs: number): string {
  const time = new Date(epochMs)
  const two = (part: number): string => String(part).padStart(2, '0')
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`
}

/** Control characters, line ends, and characters that change the writing direction. */
const active = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/**
 * Text from outside on one line, with `\\u001b` for the escape character and so on. Without this it could move the
 * cursor, or forge or hide lines of the log.
 */
export function printableLine(text: string): string {
  return text.replace(active, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** For several lines, such as a stack trace. All but the first are indented, so that none looks like a line of the log. */
export function printableLines(text: string): string {
  return text.split('\n').map(printableLine).join('\n    ')
}

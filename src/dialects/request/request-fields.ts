// Reading a request's parsed JSON field by field, with one wording for what is wrong and where. The reader refuses by
// throwing inside; readRequest turns that into a result, so that no parser has to pass failures along.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import { isRecord } from '../canonical/json-value.ts'
import { paramOf, pointerStep, type WarningList } from './warning-list.ts'

class Refused {
  constructor(readonly failure: Failure) {}
}

/** Runs a parser that may refuse at any point. */
export function readRequest<Value>(parse: () => Value): Value | Failure {
  try {
    return parse()
  } catch (refused) {
    if (refused instanceof Refused) return refused.failure
    throw refused
  }
}

export function refuse(failure: Failure): never {
  throw new Refused(failure)
}

export function refuseAt(pointer: string, message: string): never {
  return refuse(invalidRequest(message, paramOf(pointer)))
}

/** One JSON object of a request. Absent and null are the same to every `optional…` method. */
export class RequestFields {
  constructor(
    private readonly object: Readonly<Record<string, unknown>>,
    /** JSON pointer of the object; '' = the body itself. */
    readonly at: string,
  ) {}

  static of(value: unknown, at: string): RequestFields {
    if (!isRecord(value)) return wrongType(at, 'an object', value)
    return new RequestFields(value, at)
  }

  pointer(name: string): string {
    return this.at + pointerStep(name)
  }

  get names(): string[] {
    return Object.keys(this.object)
  }

  /** undefined also for null. */
  value(name: string): unknown {
    return Object.hasOwn(this.object, name) ? (this.object[name] ?? undefined) : undefined
  }

  text(name: string): string {
    return this.optionalText(name) ?? this.missing(name)
  }

  optionalText(name: string): string | undefined {
    const value = this.value(name)
    return value === undefined || typeof value === 'string' ? value : wrongType(this.pointer(name), 'a string', value)
  }

  optionalBoolean(name: string): boolean | undefined {
    const value = this.value(name)
    if (value === undefined || typeof value === 'boolean') return value
    return wrongType(this.pointer(name), 'true or false', value)
  }

  optionalNumber(name: string): number | undefined {
    const value = this.value(name)
    if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value
    return wrongType(this.pointer(name), 'a number', value)
  }

  optionalWord<Word extends string>(name: string, words: readonly Word[]): Word | undefined {
    const value = this.optionalText(name)
    const word = words.find((known) => known === value)
    if (value === undefined || word !== undefined) return word
    return this.refuse(name, `\`${paramOf(this.pointer(name))}\` must be one of ${words.join(', ')}.`)
  }

  optionalObject(name: string): RequestFields | undefined {
    const value = this.value(name)
    return value === undefined ? undefined : RequestFields.of(value, this.pointer(name))
  }

  optionalList(name: string): readonly unknown[] | undefined {
    const value = this.value(name)
    return value === undefined || Array.isArray(value) ? value : wrongType(this.pointer(name), 'an array', value)
  }

  /** The elements of a list, each an object. */
  objects(name: string): RequestFields[] {
    return (this.optionalList(name) ?? []).map((value, i) => RequestFields.of(value, `${this.pointer(name)}/${i}`))
  }

  /** Content as several dialects have it: a string, a list of objects, or nothing, which is ''. */
  textOrObjects(name: string): string | RequestFields[] {
    const value = this.value(name)
    if (value === undefined || typeof value === 'string') return value ?? ''
    return Array.isArray(value) ? this.objects(name) : wrongType(this.pointer(name), 'a string or an array', value)
  }

  /** Members that are not known are left out with a warning; null and empty ones say nothing. */
  warnUnknown(known: ReadonlySet<string>, warnings: WarningList): void {
    for (const name of this.names) {
      if (known.has(name)) continue
      const value = this.value(name)
      if (value === undefined || (Array.isArray(value) && value.length === 0)) continue
      warnings.add('field_dropped', this.pointer(name))
    }
  }

  missing(name: string): never {
    return this.refuse(name, `\`${paramOf(this.pointer(name))}\` is missing.`)
  }

  refuse(name: string, message: string): never {
    return refuseAt(this.pointer(name), message)
  }
}

export function wrongType(pointer: string, expected: string, value: unknown): never {
  const got =
    value === null ? 'null' : Array.isArray(value) ? 'an array' : isRecord(value) ? 'an object' : `a ${typeof value}`
  return refuseAt(pointer, `\`${paramOf(pointer)}\` must be ${expected}, not ${got}.`)
}

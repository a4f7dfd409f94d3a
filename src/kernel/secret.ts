// A value that must not be printed. Only `reveal` returns it, so logs, errors and JSON show a mask.

import { inspect } from 'node:util'

/** Four letters of a shorter secret would reveal too much of it. */
const maskedTailMinLength = 16

export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return this.#value.length < maskedTailMinLength ? '[secret]' : `[secret …${this.#value.slice(-4)}]`
  }

  toJSON(): string {
    return this.toString()
  }

  [inspect.custom](): string {
    return this.toString()
  }
}

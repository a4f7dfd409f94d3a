// The arguments of one streamed call as `partial_json`, which must add up to an object. Text that begins like one is
// passed as it comes; whatever else a model writes is kept to the end, where it is put into an object.

import { jsonString } from '../canonical/json.ts'
import { ArgumentScan } from '../reply/builder.ts'
import { argumentsObject } from '../request/tools.ts'

export interface ArgumentsRenderer {
  /** What can be written for a piece; '' for nothing yet. */
  push(text: string): string
  end(): string
}

export class JsonArguments implements ArgumentsRenderer {
  #held = ''
  /** held: no object has begun · passing: one comes in pieces · done: all of it is written. */
  #state: 'held' | 'passing' | 'done' = 'held'

  push(text: string): string {
    if (this.#state === 'done') return ''
    if (this.#state === 'passing') return text
    this.#held += text
    if (!this.#held.trimStart().startsWith('{')) return ''
    const scan = new ArgumentScan()
    scan.push(this.#held)
    this.#state = scan.complete ? 'done' : 'passing'
    // An object that is there at once can still be mended where it is none; official clients fail on what they cannot
    // parse.
    return scan.complete ? argumentsObject(this.#held) : this.#held
  }

  /** No arguments are no text: clients read that as an empty object. */
  end(): string {
    return this.#state !== 'held' || this.#held.trim() === '' ? '' : argumentsObject(this.#held)
  }
}

/** A custom tool's bare text, as the one argument `input`. */
export class CustomInput implements ArgumentsRenderer {
  #written = '{"input":"'

  push(text: string): string {
    const opening = this.#written
    this.#written = ''
    return opening + jsonString(text).slice(1, -1)
  }

  end(): string {
    return `${this.#written}"}`
  }
}

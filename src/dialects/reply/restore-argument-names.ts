// Gives the arguments of tool calls the names the caller knows, where the request had to use others, as they stream. Only
// names at the root of the arguments are looked at; everything else passes as it comes.

import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyStage } from './reply-stage.ts'

export class RestoreArgumentNames implements ReplyStage {
  #call: FieldNames | undefined

  /** Upstream name of a tool → upstream name of a field → the caller's. */
  constructor(private readonly tools: ReadonlyMap<string, ReadonlyMap<string, string>>) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start') {
      const names = event.block.kind === 'tool-call' ? this.tools.get(event.block.name) : undefined
      this.#call = names && new FieldNames(names)
      return [event]
    }
    if (this.#call === undefined) return [event]
    if (event.type === 'arguments-delta') return delta(this.#call.push(event.text))
    if (event.type !== 'block-end') return [event]
    const rest = this.#call.end()
    this.#call = undefined
    return [...delta(rest), event]
  }
}

function delta(text: string): readonly ReplyEvent[] {
  return text === '' ? [] : [{ type: 'arguments-delta', text }]
}

/** Finds the names of an object's own members in text that comes in pieces. */
class FieldNames {
  #depth = 0
  #escaped = false
  /** In a name at the root · in any other string · in neither. */
  #string: 'name' | 'other' | undefined
  #expectsName = false
  /** A name that has begun, with its quote. */
  #name = ''

  constructor(private readonly names: ReadonlyMap<string, string>) {}

  push(text: string): string {
    let passed = ''
    for (const character of text) passed += this.#step(character)
    return passed
  }

  /** Arguments that broke off inside a name. */
  end(): string {
    return this.#name
  }

  #step(character: string): string {
    if (this.#string === undefined) return this.#outside(character)
    const isEnd = character === '"' && !this.#escaped
    this.#escaped = character === '\\' && !this.#escaped
    const isName = this.#string === 'name'
    if (isEnd) this.#string = undefined
    if (!isName) return character
    this.#name += character
    return isEnd ? this.#takeName() : ''
  }

  #outside(character: string): string {
    if (character === '"') {
      this.#string = this.#depth === 1 && this.#expectsName ? 'name' : 'other'
      if (this.#string === 'other') return character
      this.#name = character
      return ''
    }
    if (character === '{' || character === '[') this.#depth += 1
    else if (character === '}' || character === ']') this.#depth -= 1
    if (character === '{' || character === ',') this.#expectsName = true
    else if (character === ':') this.#expectsName = false
    return character
  }

  #takeName(): string {
    const written = this.#name
    this.#name = ''
    // Names that were sent have nothing in them to escape.
    const own = this.names.get(written.slice(1, -1))
    return own === undefined ? written : JSON.stringify(own)
  }
}

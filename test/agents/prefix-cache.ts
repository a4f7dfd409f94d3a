// Prompts as providers see them, and a provider's prompt cache: what was sent before under the same key costs less.
// Sizes are characters; only their ratio matters.

import type { DialectName } from '../conformance/cells.ts'

/** One piece of a prompt; a mark stands behind it. */
interface Piece {
  readonly text: string
  readonly isMarked: boolean
}

type Json = Record<string, unknown>

/** Marks move with the end of a conversation and are not part of its prompt. */
export function withoutMarks(text: string): string {
  return text.replaceAll(/,"(cache_control|prompt_cache_breakpoint)":\{[^}]*\}/g, '')
}

function pieceOf(value: unknown, at = ''): Piece {
  const text = JSON.stringify(value)
  const bare = withoutMarks(text)
  return { text: at + bare, isMarked: bare !== text }
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : [])

/** In the order in which the provider reads it: tools, instructions, turns. */
export function promptOf(dialect: DialectName, body: Json): Piece[] {
  const tools = list(body.tools).map((tool) => pieceOf(tool))
  switch (dialect) {
    case 'messages': {
      // Anthropic leaves this block out of the prompt.
      const system = list(body.system).filter(({ text }) => !String(text).startsWith('x-anthropic-billing-header'))
      const turns = list(body.messages).flatMap(({ role, content }) =>
        list(content).map((each) => pieceOf(each, String(role))),
      )
      return [...tools, ...system.map((each) => pieceOf(each)), ...turns]
    }
    case 'gemini':
      return [...tools, pieceOf(body.systemInstruction), ...list(body.contents).map((each) => pieceOf(each))]
    case 'responses':
      return [...tools, pieceOf(body.instructions ?? null), ...list(body.input).map((each) => pieceOf(each))]
    default:
      return [...tools, ...list(body.messages).map((each) => pieceOf(each))]
  }
}

/** Blocks that a provider looks back from a mark. */
const lookback = 20

export class PrefixCache {
  readonly #written = new Set<string>()
  read = 0
  total = 0

  /** `where`: the account and cache key; a cache is found nowhere else. */
  take(prompt: readonly Piece[], where: string, caches: 'marked' | 'everything'): void {
    const prefixes: string[] = []
    let text = where
    for (const piece of prompt) {
      text = `${Bun.hash(text)} ${piece.text.length} ${Bun.hash(piece.text)}`
      prefixes.push(text)
    }
    const sizes = prompt.map((_, i) => prompt.slice(0, i + 1).reduce((sum, piece) => sum + piece.text.length, 0))
    const marks = prompt.flatMap(({ isMarked }, i) => (isMarked || caches === 'everything' ? [i] : []))
    let hit = 0
    for (const at of marks) {
      for (let i = at; i >= 0 && i > at - lookback; i--) {
        if (this.#written.has(prefixes[i] ?? '')) hit = Math.max(hit, sizes[i] ?? 0)
      }
    }
    for (const at of marks) this.#written.add(prefixes[at] ?? '')
    this.read += hit
    this.total += sizes.at(-1) ?? 0
  }

  get hitRate(): number {
    return this.read / this.total
  }
}

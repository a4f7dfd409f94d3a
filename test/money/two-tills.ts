// A price with one more row, and the same without it, each at a separate gateway for all tests of a file.

import { afterAll, beforeAll } from 'bun:test'
import { openTill, streamedPaths, type Till, wholePaths } from './till.ts'

/** Callers of Messages whose provider speaks it too: what only Anthropic has gets through. */
export const messagesPaths = [...streamedPaths, ...wholePaths].filter(
  ({ surface, provider }) => surface.name === 'messages' && provider === 'messages',
)

export interface Explained {
  readonly usage: object
  readonly charge: { readonly lines: readonly object[] }
}

const plain = 'input: "1.00", output: "2.00"'

export interface TwoTills {
  priced(): Till
  unpriced(): Till
}

/** `more`: what the one has, as in the configuration file. */
export function useTwoTills(more: string): TwoTills {
  const tills: Till[] = []
  beforeAll(async () => {
    for (const price of [`{ ${plain}, ${more} }`, `{ ${plain} }`]) tills.push(await openTill({ price }))
  })
  afterAll(async () => {
    for (const till of tills) await till[Symbol.asyncDispose]()
  })
  const at = (index: number) => () => {
    const till = tills[index]
    if (!till) throw new Error('the tills open before the first test')
    return till
  }
  return { priced: at(0), unpriced: at(1) }
}

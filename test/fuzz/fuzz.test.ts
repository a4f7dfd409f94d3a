// A bounded share of the fuzzing that `bun run test/fuzz/fuzz.ts` does for as long as one likes: the whole corpus, and a
// few hundred to two thousand random inputs for each target. The seed is fixed; other seeds are for nights.

import { describe, expect, test } from 'bun:test'
import { fuzz } from './target.ts'
import { targets } from './targets.ts'

const seed = 20_261_115

describe('Z1, Z2, Z3, Z6: no input makes it fail:', () => {
  for (const target of targets) {
    test(target.name, async () => {
      expect((await fuzz(target, target.shareInputs, seed)).violation).toBeUndefined()
    })
  }
})

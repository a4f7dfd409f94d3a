// A provider as a separate process, so that it can be killed: prints its address, begins every stream and never ends
// one.

import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

const upstream = startUpstream(async (call, reply) => {
  const words = wordsFor(call)
  await reply.startStream()
  await reply.chunk(words.opening + words.says('hello'))
})
console.log(upstream.url)

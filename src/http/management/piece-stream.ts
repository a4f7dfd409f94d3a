// Pieces of text as a stream of bytes: the next one is asked for when the last one was taken, so that a slow reader holds
// up nothing but itself, and nothing more is read once it has left.

const encoder = new TextEncoder()

/** `onFault` hears of what the pieces threw; the stream then breaks off. */
export function pieceStream(
  pieces: AsyncIterable<string>,
  onFault: (thrown: unknown) => void,
): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(encoder.encode(value))
      } catch (thrown) {
        onFault(thrown)
        controller.error(thrown)
      }
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}

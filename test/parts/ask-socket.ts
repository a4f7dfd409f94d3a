// One question to a part of ours that was loaded into another process, and its answer: a line of JSON each way.

/** Rejects if the socket does not exist or the answer breaks off. */
export function askSocket<Answer>(path: string, question: string): Promise<Answer> {
  const answer = Promise.withResolvers<Answer>()
  let text = ''
  void Bun.connect({
    unix: path,
    socket: {
      open: (socket) => void socket.write(`${question}\n`),
      data: (_, bytes) => {
        text += bytes.toString('utf8')
      },
      close: () => {
        if (text.endsWith('\n')) answer.resolve(JSON.parse(text) as Answer)
        else answer.reject(new Error(`the answer broke off: ${text}`))
      },
      error: (_, error) => answer.reject(error),
    },
  }).catch(answer.reject)
  return answer.promise
}

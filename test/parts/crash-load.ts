// Load on one gateway: so many places for streams and for whole calls, each filled again as soon as it is free, on both
// surfaces and through both lanes. It ends when the gateway is gone, or on `end`.

import { type Ask, askForReceipt, askKinds, type Receipt } from './crash-client.ts'
import { createTurns } from './turns.ts'

export interface LoadOptions {
  readonly gateway: { readonly url: string; readonly key: string; isAlive(): boolean }
  readonly streams: number
  readonly wholes: number
}

export interface Load {
  /** Streams of which bytes have come and not the end. */
  runningStreams(): number
  /** Asked so far, answered or not. */
  asked(): number
  /** The finished requests so far. */
  readonly receipts: readonly Receipt[]
  /** No new calls; resolves with what all of them came to. */
  end(): Promise<readonly Receipt[]>
}

/** One client in twenty disconnects in the middle of its stream. */
const leaveShare = 0.05
/** So many places at once wait for their first answer: a gateway that was just started turns calls away when all come. */
const beginningMax = 6
const refusedPauseMs = 200

export function startLoad({ gateway, streams, wholes }: LoadOptions): Load {
  const receipts: Receipt[] = []
  let asked = 0
  let running = 0
  let isEnding = false

  const takeTurn = createTurns(beginningMax)

  const callOnce = async (stream: boolean, onBegun = () => {}) => {
    let began = false
    asked++
    const onBytes = () => {
      if (began) return
      began = true
      running += stream ? 1 : 0
      onBegun()
    }
    const receipt = await askForReceipt(gateway, randomAsk(stream), { onBytes })
    if (!began) onBegun()
    else if (stream) running--
    receipts.push(receipt)
    return receipt
  }
  const fill = async (stream: boolean) => {
    let onBegun: (() => void) | undefined = await takeTurn()
    while (!isEnding && gateway.isAlive()) {
      const receipt = await callOnce(stream, onBegun)
      onBegun = undefined
      // The gateway is gone, or rejects requests for the moment.
      if (receipt.status !== 200 && gateway.isAlive()) await Bun.sleep(refusedPauseMs)
    }
    // The others, who wait, must see that it is over.
    onBegun?.()
  }
  const places = [
    ...Array.from({ length: streams }, () => fill(true)),
    ...Array.from({ length: wholes }, () => fill(false)),
  ]
  return {
    runningStreams: () => running,
    asked: () => asked,
    receipts,
    async end() {
      isEnding = true
      await Promise.all(places)
      return receipts
    },
  }
}

function randomAsk(stream: boolean): Ask {
  const kind = askKinds[below(askKinds.length)] ?? askKinds[0]
  if (kind === undefined) throw new Error('there is nothing to ask')
  const order = {
    inputTokens: 1 + below(500),
    outputTokens: 1 + below(300),
    pieces: stream ? 3 + below(10) : 1,
    pauseMs: stream ? 40 + below(120) : below(60),
  }
  const leaves = stream && Math.random() < leaveShare
  return { ...kind, stream, order, ...(leaves && { leaveAfterBytes: 300 + below(2000) }) }
}

function below(limit: number): number {
  return Math.floor(Math.random() * limit)
}

// A load balancer before the replicas: each call goes to the next one that takes calls. It decides as a proxy would,
// by what it sees from outside.

import type { Fleet, Member } from './fleet.ts'

/** In the place of a gateway: every look at `url` is another replica's turn. */
export interface Balancer {
  readonly url: string
  readonly key: string
  isAlive(): boolean
}

/** Leaves out those whose process is gone. */
export function balance(fleet: Fleet, key = fleet.key, isTaken = (member: Member) => member.isUp()): Balancer {
  let turn = 0
  return {
    get url() {
      for (let tries = 0; tries < fleet.members.length; tries++) {
        const member = fleet.members[turn++ % fleet.members.length] as Member
        if (isTaken(member)) return member.url
      }
      // No replica listens: the call is refused, and that is what a caller would see.
      return (fleet.members[0] as Member).url
    },
    key,
    isAlive: () => true,
  }
}

/** Leaves out those whose /readyz does not say 200, asked again and again, as a balancer with health checks. */
export function balanceByReadiness(fleet: Fleet, probeMs: number): Balancer & AsyncDisposable {
  const ready = new Set<Member>(fleet.members)
  const probe = async (member: Member): Promise<void> => {
    if (await isReady(member)) ready.add(member)
    else ready.delete(member)
  }
  const timer = setInterval(() => {
    for (const member of fleet.members) void probe(member)
  }, probeMs)
  const balancer = balance(fleet, fleet.key, (member) => ready.has(member))
  return {
    get url() {
      return balancer.url
    },
    key: fleet.key,
    isAlive: () => true,
    [Symbol.asyncDispose]: async () => clearInterval(timer),
  }
}

export async function isReady({ url }: Member): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`)
    await response.text()
    return response.status === 200
  } catch {
    return false
  }
}

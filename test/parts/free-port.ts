// A port that stays free. One below the range from which the kernel takes the source ports of outgoing connections: a
// port from that range can be taken by any client while its server is down, even by the client that tries to reach it,
// which then connects to itself, and the server can no longer start.

import { readFileSync } from 'node:fs'

const firstPort = 10_000
const rangePath = '/proc/sys/net/ipv4/ip_local_port_range'

export function freePort(): number {
  const count = lowestSourcePort() - firstPort
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * count)
    if (isFree(port)) return port
  }
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
    return true
  } catch {
    return false
  }
}

/** Where Linux does not say, the lowest one by default: that of Linux, below that of other systems. */
function lowestSourcePort(): number {
  try {
    return Number.parseInt(readFileSync(rangePath, 'utf8'), 10)
  } catch {
    return 32_768
  }
}

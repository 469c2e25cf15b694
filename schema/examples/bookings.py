"""Three services to try booking.json with: flights at 9101, hotels at 9102, cars at 9103. Nothing is kept.

    python3 bookings.py        until Ctrl-C; a booking for "nobody" is refused
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Service(BaseHTTPRequestHandler):
    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if wanted["for"] == "nobody":
            return self.answer(422, {"message": "a booking is for somebody"})
        # The same key again is the same booking: that is what the class `keyed` says of this service.
        key = self.headers["Idempotency-Key"]
        self.answer(200, self.server.bookings.setdefault(key, wanted))

    def do_DELETE(self):
        # What is not there needs no cancelling: that is what `idempotent` says.
        self.answer(200, {"cancelled": self.server.bookings.pop(self.path.rsplit("/", 1)[-1], None)})


for port in (9101, 9102, 9103):
    server = ThreadingHTTPServer(("127.0.0.1", port), Service)
    server.bookings = {}
    Thread(target=server.serve_forever).start()

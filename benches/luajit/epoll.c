/* A server that is about as fast as possible on this machine, for comparison. It has one thread, uses epoll, and
 * answers every request with the same text and the current date. It does not parse requests, but only counts the empty
 * lines at their ends.
 *
 *   epoll PORT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 16384, EVENTS = 256, CLIENTS = 65536 };

static char reply[256];
static size_t reply_length;
static unsigned char matched[CLIENTS]; /* for each client: how many bytes of "\r\n\r\n" have just arrived */

static void write_date(void)
{
    static time_t last;
    time_t now = time(NULL);
    if (now == last)
        return;
    last = now;
    char date[64];
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now));
    reply_length = (size_t)sprintf(reply,
        "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 13\r\n\r\nhello, world\n", date);
}

static int count_ends(int client, const char *bytes, ssize_t length)
{
    int ends = 0;
    unsigned char state = matched[client];
    for (ssize_t i = 0; i < length; i++) {
        state = bytes[i] == "\r\n\r\n"[state] ? state + 1 : bytes[i] == '\r';
        if (state == 4) {
            ends++;
            state = 0;
        }
    }
    matched[client] = state;
    return ends;
}

static void serve(int client)
{
    static char in[ROOM], out[ROOM * 16];
    ssize_t length = read(client, in, sizeof in);
    if (length <= 0) {
        if (length == 0 || errno != EAGAIN)
            close(client);
        return;
    }
    int ends = count_ends(client, in, length);
    size_t filled = 0;
    write_date();
    for (int i = 0; i < ends && filled + reply_length <= sizeof out; i++, filled += reply_length)
        memcpy(out + filled, reply, reply_length);
    /* A client that does not read its replies is disconnected, because this server keeps nothing to send later. */
    if (filled && write(client, out, filled) != (ssize_t)filled)
        close(client);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: epoll PORT\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) {
        perror("epoll");
        return 1;
    }
    int poller = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listener }, events[EVENTS];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                serve(fd);
                continue;
            }
            int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (client >= CLIENTS)
                close(client);
            if (client < 0 || client >= CLIENTS)
                continue;
            setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            matched[client] = 0;
            event.events = EPOLLIN;
            event.data.fd = client;
            epoll_ctl(poller, EPOLL_CTL_ADD, client, &event);
        }
    }
}
